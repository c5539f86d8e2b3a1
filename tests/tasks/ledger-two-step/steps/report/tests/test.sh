#!/bin/bash
. /tests/lib.sh
if [ "$(cat /app/total.txt)" = "$EXPECTED_TOTAL" ]; then emit '{"reward": 1}'; else emit '{"reward": 0}'; fi
