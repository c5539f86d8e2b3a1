# shellcheck shell=bash
# The Docker engine: found, else installed (Debian and Ubuntu, as root) and started.
# 25 is the oldest that knows a healthcheck's start_interval; it comes with Compose v2 and buildx.

ENGINE_MINIMUM=25
ENGINE_SOCKET=/var/run/docker.sock
ENGINE_LOG=/var/log/pytest-harbor-dockerd.log
ENGINE_FIX="Install Docker Engine $ENGINE_MINIMUM or newer with the compose and buildx plugins and start it, or set DOCKER_HOST to one."

# The version that answers, "26.1.5+dfsg1" say; fails when none does.
engine_version() { have docker && within 20 docker version --format '{{.Server.Version}}' 2>/dev/null; }

engine_answers() { engine_version >/dev/null; }

# The engine that the environment points to, when that is not this machine's own.
engine_elsewhere() {
    local context
    if [ -n "${DOCKER_HOST:-}" ]; then
        [ "$DOCKER_HOST" = "unix://$ENGINE_SOCKET" ] || printf 'DOCKER_HOST=%s\n' "$DOCKER_HOST"
    elif have docker; then
        context="$(docker context show 2>/dev/null || true)"
        case "$context" in '' | default) ;; *) printf 'the docker context "%s"\n' "$context" ;; esac
    fi
}

plugins_answer() {
    docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1
}

# An installed engine may be too old: bookworm's own is 20.10.
dockerd_is_new_enough() {
    local version
    version="$(dockerd --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')"
    [ -n "$version" ] && [ "$version" -ge "$ENGINE_MINIMUM" ]
}

# What an installation lacks, or has too old, to be started as it is.
needs_installing() {
    ! have docker || ! dockerd_is_new_enough || ! plugins_answer || runc_breaks_exec
}

runc_breaks_exec() { runc --version 2>/dev/null | grep -qE '^runc version 1\.1\.[0-5]([^0-9]|$)'; }

has_systemd() { [ -d /run/systemd/system ] && have systemctl; }

# Bookworm's engine (20.10) is too old, so engine, client and plugins come from trixie; the pins keep
# everything else on the machine what it is.
add_trixie_for_the_engine() {
    local mirror
    mirror="$(debian_mirror)"
    [ -n "$mirror" ] || fail "no Debian archive found in this machine's apt sources" "$ENGINE_FIX"
    cat >/etc/apt/sources.list.d/pytest-harbor-engine.sources <<SOURCES
# Written by pytest-harbor's script/setup: the Docker engine only (see preferences.d).
Types: deb
URIs: $mirror
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
    cat >/etc/apt/preferences.d/pytest-harbor-engine <<'PREFERENCES'
Explanation: written by pytest-harbor's script/setup
Package: *
Pin: release n=trixie
Pin-Priority: 50

Package: docker.io docker-cli docker-compose docker-buildx containerd
Pin: release n=trixie
Pin-Priority: 600
PREFERENCES
}

# Bookworm's runc (1.1.5) breaks exec after 'docker restart'. Trixie's needs a newer libc, and that
# would turn the whole machine into half a trixie; so the binary gets the libc that it was built for
# beside it, and stands in /usr/local/sbin, which a service's PATH names first.
RUNC_HOME=/usr/local/lib/pytest-harbor/runc
install_runc_from_trixie() {
    local work loader library
    work="$SCRATCH/runc"
    mkdir -p "$work"
    (
        cd "$work" || return 1
        apt-get download -o APT::Sandbox::User=root runc/trixie libc6/trixie libseccomp2/trixie
        for package in *.deb; do dpkg-deb -x "$package" root; done
    ) || return 1
    mkdir -p "$RUNC_HOME"
    cp "$work/root/usr/sbin/runc" "$RUNC_HOME/runc"
    for library in libc.so.6 libseccomp.so.2; do
        cp -L "$(find "$work/root/usr/lib" -name "$library" | head -n 1)" "$RUNC_HOME/$library"
    done
    loader="$(patchelf --print-interpreter "$RUNC_HOME/runc")"
    cp -L "$(find "$work/root/usr/lib" -name "$(basename "$loader")" | head -n 1)" "$RUNC_HOME/"
    patchelf --set-interpreter "$RUNC_HOME/$(basename "$loader")" --set-rpath "$RUNC_HOME" "$RUNC_HOME/runc"
    "$RUNC_HOME/runc" --version && ln -sfn "$RUNC_HOME/runc" /usr/local/sbin/runc
}

install_engine() {
    local bookworm='' packages=(docker.io docker-buildx iptables ca-certificates)
    can_install ||
        fail "no Docker engine answers, and setup can install one only as root on Debian or Ubuntu" "$ENGINE_FIX"
    if is_ubuntu; then
        packages+=(docker-compose-v2)
    elif is_debian; then
        packages+=(docker-cli docker-compose containerd runc)
        if [ "$(os_field VERSION_CODENAME)" = bookworm ]; then
            bookworm=yes
            packages+=(patchelf)
            add_trixie_for_the_engine
        fi
    else
        fail "no Docker engine answers, and this is neither Debian nor Ubuntu" "$ENGINE_FIX"
    fi
    say "engine: installing ${packages[*]}"
    install_packages "${packages[@]}" ||
        fail "installing the Docker engine (log: $INSTALL_LOG)" \
            "Check that the package archive can be reached, or:" "$ENGINE_FIX"
    if [ -n "$bookworm" ]; then
        quietly "$INSTALL_LOG" install_runc_from_trixie ||
            fail "installing runc from trixie (log: $INSTALL_LOG)" "$ENGINE_FIX"
    fi
    hash -r
}

# Docker needs a firewall that can NAT; some kernels know only one of the two flavours of iptables.
choose_iptables() {
    have update-alternatives && have iptables || return 0
    can_nat iptables && return 0
    local flavour
    for flavour in nft legacy; do
        if have "iptables-$flavour" && can_nat "iptables-$flavour"; then
            say "engine: switching to iptables-$flavour, the flavour that this kernel knows"
            update-alternatives --set iptables "$(command -v "iptables-$flavour")" >/dev/null
            if have "ip6tables-$flavour"; then
                update-alternatives --set ip6tables "$(command -v "ip6tables-$flavour")" >/dev/null
            fi
            return 0
        fi
    done
    say "engine: no flavour of iptables can NAT on this kernel; containers may have no network"
}

# can_nat IPTABLES: tries, in a chain of its own, the rules that Docker will write.
can_nat() {
    local chain=PYTEST-HARBOR-PROBE ok=0
    "$1" -w 5 -t nat -N "$chain" 2>/dev/null || return 1
    {
        "$1" -w 5 -t nat -A "$chain" -m addrtype --dst-type LOCAL -j RETURN &&
            "$1" -w 5 -t nat -A "$chain" -s 192.0.2.0/24 -j MASQUERADE
    } 2>/dev/null || ok=1
    "$1" -w 5 -t nat -F "$chain" 2>/dev/null
    "$1" -w 5 -t nat -X "$chain" 2>/dev/null
    return "$ok"
}

# Packets larger than the machine's own way out are lost without a word, and downloads hang.
uplink_mtu() {
    local device
    device="$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route 2>/dev/null)"
    if [ -n "$device" ]; then cat "/sys/class/net/$device/mtu" 2>/dev/null || true; fi
}

# A pid file left by a killed engine may name a number that another process has by now, and dockerd
# refuses to start when that number is alive.
remove_stale_pid_files() {
    local file pid name
    for file in /run/docker.pid /run/docker/containerd/containerd.pid; do
        [ -s "$file" ] || continue
        pid="$(cat "$file")"
        name="$(cat "/proc/$pid/comm" 2>/dev/null || true)"
        case "$name" in
            dockerd | containerd) ;;
            *) rm -f "$file" ;;
        esac
    done
}

start_engine() {
    local options=() mtu waited
    say "engine: starting it"
    if has_systemd; then
        systemctl start docker || fail "systemctl start docker" "See: journalctl -u docker"
    else
        [ "$(id -u)" -eq 0 ] ||
            fail "the Docker engine is installed but not running" "Start it, or run this script as root."
        choose_iptables
        remove_stale_pid_files
        mtu="$(uplink_mtu)"
        if [ -n "$mtu" ] && [ "$mtu" -lt 1500 ] && ! [ -e /etc/docker/daemon.json ]; then
            options+=(--mtu "$mtu" --default-network-opt "bridge=com.docker.network.driver.mtu=$mtu")
        fi
        # 9 is this script's lock: an engine that inherits it would hold it for ever.
        setsid nohup dockerd "${options[@]}" >>"$ENGINE_LOG" 2>&1 </dev/null 9>&- &
    fi
    for ((waited = 0; waited < 120; waited++)); do
        engine_answers && return 0
        sleep 0.5
    done
    if ! has_systemd; then tail -n 25 "$ENGINE_LOG" >&2; fi
    fail "the Docker engine does not answer after 60 seconds (log: $ENGINE_LOG)" "$ENGINE_FIX"
}

ensure_engine() {
    local version elsewhere
    if ! engine_answers; then
        elsewhere="$(engine_elsewhere)"
        [ -z "$elsewhere" ] ||
            fail "no Docker engine answers at $elsewhere" "Start it, or unset that to use this machine's own."
        if [ -S "$ENGINE_SOCKET" ] && ! [ -w "$ENGINE_SOCKET" ]; then
            fail "this user may not talk to the Docker engine at $ENGINE_SOCKET" \
                "Add the user to the group docker and log in again, or run this script as root."
        fi
        if needs_installing; then install_engine; fi
        start_engine
    fi
    version="$(engine_version)"
    [ "${version%%.*}" -ge "$ENGINE_MINIMUM" ] ||
        fail "Docker engine $version answers, but $ENGINE_MINIMUM or newer is needed" "$ENGINE_FIX"
    plugins_answer ||
        fail "the docker client lacks the compose (v2) or buildx plugin" \
            "Install both; 'docker compose version' and 'docker buildx version' must work."
    say "engine: Docker $version, Compose $(docker compose version --short 2>/dev/null)"
}
