# shellcheck shell=bash
# How the scripts talk: one short line per thing done, and a failure that says how to fix it.

say() { printf '[%s] %s\n' "${SCRIPT_NAME:-setup}" "$*"; }

# fail WHAT [HOW-TO-FIX...]: each further argument is a line of advice.
fail() {
    printf '[%s] FAILED: %s\n' "${SCRIPT_NAME:-setup}" "$1" >&2
    shift
    local line
    for line in "$@"; do printf '[%s]   %s\n' "${SCRIPT_NAME:-setup}" "$line" >&2; done
    exit 1
}

# within SECONDS COMMAND...: as timeout does it, where there is one.
within() {
    if have timeout; then timeout "$@"; else "${@:2}"; fi
}

have() { command -v "$1" >/dev/null 2>&1; }

# quietly LOG COMMAND...: runs it with its output in LOG; on failure shows the log's end.
quietly() {
    local log="$1" status=0
    shift
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$status" -ne 0 ]; then tail -n 25 "$log" >&2; fi
    return "$status"
}
