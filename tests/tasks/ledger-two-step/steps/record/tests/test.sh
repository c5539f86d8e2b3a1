#!/bin/bash
. /tests/lib.sh
n=$(rows | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')
if [ "$n" = 2 ]; then emit '{"reward": 1, "entries": 1}'; else emit '{"reward": 0, "entries": 0}'; fi
