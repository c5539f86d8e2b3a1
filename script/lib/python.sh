# shellcheck shell=bash
# The virtual environment: .venv with the package installed editable and what its developers need.
# A stamp in it says for which pyproject.toml that was done, so that a second call has nothing to do.

PYTHON_MINIMUM="3.11"

# Recent enough, and able to make a virtual environment (Debian splits that off).
python_will_do() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python3.14 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-9]*/bin/python3; do
        if have "$candidate" && python_will_do "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

install_python() {
    local fix="Install Python $PYTHON_MINIMUM or newer with its venv module, and put it on PATH."
    can_install || fail "no Python $PYTHON_MINIMUM or newer found" "$fix"
    say "python: installing python3 and python3-venv"
    install_packages python3 python3-venv || fail "installing Python (log: $INSTALL_LOG)" "$fix"
    hash -r
}

# What the stamp must say for the environment to be as it should. The checkout's path is part of it:
# an environment that was moved or copied has programs that start the old one.
wanted_stamp() {
    pwd
    cksum pyproject.toml
}

ensure_venv() {
    local python stamp=.venv/.setup-stamp
    if python_will_do .venv/bin/python && [ "$(cat "$stamp" 2>/dev/null)" = "$(wanted_stamp)" ]; then
        say "python: .venv is up to date"
        return 0
    fi
    if ! python_will_do .venv/bin/python ||
        { [ -e "$stamp" ] && [ "$(head -n 1 "$stamp")" != "$PWD" ]; }; then
        find_python >/dev/null || install_python
        python="$(find_python)" || fail "no Python $PYTHON_MINIMUM or newer found, even after installing Debian's" \
            "Install one and put it on PATH."
        say "python: making .venv with $("$python" --version)"
        rm -rf .venv
        "$python" -m venv .venv || fail "making the virtual environment .venv"
    fi
    say "python: installing pytest-harbor and its developers' tools"
    quietly "$SCRATCH/pip.log" \
        .venv/bin/python -m pip install --disable-pip-version-check --editable '.[dev]' ||
        fail "pip install --editable '.[dev]'" "Check that the package index can be reached (pip config list shows which)."
    wanted_stamp >"$stamp"
}
