# shellcheck shell=bash
# The base images of script/base-images: there already, else pulled, else made as stand-ins.
# A stand-in is made only where no registry can be reached; it carries the label below, so that
# nobody takes it for the real image.

STAND_IN_LABEL=pytest-harbor.stand-in=true

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# Did this error come from the way to the registry, rather than from the registry?
registry_is_unreachable() {
    grep -qiE 'dial tcp|no such host|i/o timeout|timed out|client.timeout|connection (refused|reset)|network is unreachable|proxyconnect|x509|TLS handshake|: EOF|context deadline' "$SCRATCH/image.log"
}

# pull IMAGE: 0 when it is there, 1 when no registry can be reached.
pull() {
    local status=0
    say "image $1: pulling"
    within 600 docker pull --quiet "$1" >"$SCRATCH/image.log" 2>&1 </dev/null || status=$?
    if [ "$status" -eq 0 ]; then return 0; fi
    if [ "$status" -eq 124 ] || registry_is_unreachable; then return 1; fi
    cat "$SCRATCH/image.log" >&2
    fail "pulling $1: the registry answered, but not with the image" "Try again, log in with 'docker login', or load the image by hand: docker load -i FILE."
}

# The machine's own package archive and certificates go into the image, with what else its apt needs:
# where a registry is out of reach, containers reach packages only as the machine does.
bootstrap_debian() {
    local image="$1" suite mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg work
    suite="${image#*:}" suite="${suite%-slim}"
    mirror="${PYTEST_HARBOR_DEBIAN_MIRROR:-$([ "$(os_field ID)" != debian ] || debian_mirror)}"
    if ! can_install || [ -z "$mirror" ]; then
        fail "no registry can be reached, and a stand-in for $image can only be made as root on Debian" \
            "Load the image by hand (docker load -i FILE), or set PYTEST_HARBOR_DEBIAN_MIRROR to a Debian archive."
    fi
    if ! have mmdebstrap || ! [ -r "$keyring" ]; then
        say "installing mmdebstrap, which makes the stand-in"
        install_packages mmdebstrap debian-archive-keyring || fail "installing mmdebstrap (log: $INSTALL_LOG)"
    fi
    work="$SCRATCH/debian"
    mkdir -p "$work/certificates"
    cp /usr/local/share/ca-certificates/*.crt "$work/certificates/" 2>/dev/null || true
    local options=(
        "--aptopt=Acquire::Languages none"
        "--dpkgopt=path-exclude=/usr/share/man/*"
        "--dpkgopt=path-exclude=/usr/share/doc/*"
        "--dpkgopt=path-include=/usr/share/doc/*/copyright"
        "--dpkgopt=path-exclude=/usr/share/locale/*"
        # Both: the bundle for now, the machine's own authorities for when ca-certificates is
        # installed later and writes the bundle anew.
        "--customize-hook=mkdir -p \$1/etc/ssl/certs \$1/usr/local/share/ca-certificates"
        "--customize-hook=upload /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt"
        "--customize-hook=copy-in $work/certificates/. /usr/local/share/ca-certificates"
    )
    local setting
    for setting in Check-Valid-Until Check-Date; do
        if apt-config dump "Acquire::$setting" | grep -q false; then
            options+=("--aptopt=Acquire::$setting \"false\"")
        fi
    done
    say "image $image: no registry can be reached; making a stand-in from the Debian archive"
    quietly "$SCRATCH/image.log" mmdebstrap --variant=minbase --mode=root "${options[@]}" "$suite" "$work/root.tar" \
        "deb [signed-by=$keyring] $mirror $suite main" "deb [signed-by=$keyring] $mirror $suite-updates main" ||
        fail "mmdebstrap $suite" "Check that $mirror can be reached."
    local bundle=/etc/ssl/certs/ca-certificates.crt
    quietly "$SCRATCH/image.log" docker import \
        --change "ENV SSL_CERT_FILE=$bundle PIP_CERT=$bundle REQUESTS_CA_BUNDLE=$bundle CURL_CA_BUNDLE=$bundle NODE_EXTRA_CA_CERTS=$bundle GIT_SSL_CAINFO=$bundle" \
        --change "LABEL $STAND_IN_LABEL" --change 'CMD ["bash"]' "$work/root.tar" "$image" ||
        fail "docker import $image"
}

build_stand_in() {
    local image="$1" dockerfile="$2"
    say "image $image: no registry can be reached; making a stand-in from $dockerfile"
    quietly "$SCRATCH/image.log" docker build --file "$dockerfile" --tag "$image" "$(dirname "$dockerfile")" ||
        fail "docker build of the stand-in $dockerfile" "Do containers reach the package archive? Try: docker run --rm debian:bookworm-slim apt-get update"
}

# ensure_images LIST STAND-INS
ensure_images() {
    local list="$1" stand_ins="$2" image stand_in reachable=yes present=()
    while read -r image stand_in; do
        case "$image" in '' | '#'*) continue ;; esac
        if has_image "$image"; then
            present+=("$image")
            continue
        fi
        if [ -n "$reachable" ] && pull "$image"; then continue; fi
        reachable=
        case "$stand_in" in
            bootstrap) bootstrap_debian "$image" ;;
            '') fail "no registry can be reached, and $list names no stand-in for $image" "Load it by hand: docker load -i FILE" ;;
            *) build_stand_in "$image" "$stand_ins/$stand_in" ;;
        esac
    done <"$list"
    if [ "${#present[@]}" -gt 0 ]; then say "images: present: ${present[*]}"; fi
}
