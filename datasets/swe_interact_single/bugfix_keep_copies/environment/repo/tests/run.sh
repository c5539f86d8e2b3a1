#!/bin/sh
# Each check compares what keep prints (and its exit status) with what it should.
keep=$PWD/bin/keep
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

check() { # <what> <expected status> <expected output> <keep's words>...
    what=$1 status=$2 expected=$3
    shift 3
    out=$("$keep" "$@" 2>&1)
    got=$?
    if [ "$got" != "$status" ] || [ "$out" != "$expected" ]; then
        echo "FAILED: $what"
        echo "  expected ($status): $expected"
        echo "  got      ($got): $out"
        failed=1
    fi
}

at() { # <time of day>: what time it is
    export KEEP_NOW="20260105-$1"
}

echo one > notes
at 090000
check 'save' 0 '' save notes
echo two > notes
at 100000
check 'save again' 0 '' save notes
check 'list' 0 '20260105-100000
20260105-090000' list notes
check 'restore an older one' 0 '' restore notes 2
[ "$(cat notes)" = one ] || { echo 'FAILED: not restored'; failed=1; }
check 'a missing file' 1 'keep: no such file: nothing' save nothing

exit $failed
