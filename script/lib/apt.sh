# shellcheck shell=bash
# Debian's and Ubuntu's packages, and where this machine gets them from.

# shellcheck disable=SC2034  # for the parts that install
INSTALL_LOG=/var/log/pytest-harbor-install.log

# os_field NAME: a line of /etc/os-release.
os_field() { (
    # shellcheck disable=SC1091
    . /etc/os-release && eval "printf '%s' \"\${$1:-}\""
); }

is_ubuntu() { [ "$(os_field ID)" = ubuntu ] || [[ " $(os_field ID_LIKE) " == *" ubuntu "* ]]; }
is_debian() { [ "$(os_field ID)" = debian ] || [[ " $(os_field ID_LIKE) " == *" debian "* ]]; }

can_install() { [ -r /etc/os-release ] && have apt-get && [ "$(id -u)" -eq 0 ]; }

# install_packages NAME...: quietly; what it said is in INSTALL_LOG.
install_packages() { quietly "$INSTALL_LOG" update_and_install "$@"; }

update_and_install() {
    apt-get update -o DPkg::Lock::Timeout=300 || return 1
    # RUNLEVEL=1: no package's script may start a service; setup does that when all is ready.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300 "$@"
}

# The archive that this machine installs from: the address that its own apt sources name.
debian_mirror() {
    local codename
    codename="$(os_field VERSION_CODENAME)"
    # shellcheck disable=SC2016  # the $( ) belong to apt's own format
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$codename" '$2 == release { sub(/\/$/, "", $1); print $1; exit }'
}
