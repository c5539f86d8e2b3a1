#!/bin/sh
# Each check compares what inq prints (and its exit status) with what it should.
inq=${INQ:-build/inq}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

file() { # <printf format>: the file under test
    printf "$1" > "$folder/t.ini"
}

check() { # <what> <expected status> <expected output> <inq's words>...
    what=$1 status=$2 expected=$3
    shift 3
    out=$(cd "$folder" && "$inq" "$@" 2>&1)
    got=$?
    if [ "$got" != "$status" ] || [ "$out" != "$expected" ]; then
        echo "FAILED: $what"
        echo "  expected ($status): $expected"
        echo "  got      ($got): $out"
        failed=1
    fi
}

case $inq in /*) ;; *) inq=$PWD/$inq ;; esac

file 'top = 1\n\n[one]\n# a comment\nname = first thing\n[two]\nname=second\n'
check 'a key of a section' 0 'first thing' get t.ini one name
check 'another section' 0 'second' get t.ini two name
check 'before any section' 0 '1' get t.ini '' top
check 'no such key' 1 'inq: no such key: [one] other' get t.ini one other
check 'everything in order' 0 '.top=1
one.name=first thing
two.name=second' dump t.ini

file '[s]\nquoted = " padded "\n'
check 'a quoted value keeps its blanks' 0 ' padded ' get t.ini s quoted

file 'nonsense\n'
check 'neither key nor section' 2 't.ini:1: expected key = value' dump t.ini

exit $failed
