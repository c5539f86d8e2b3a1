#!/bin/sh
if [ "$(cat /app/kinds.txt)" = "$(printf 'apple\nfig\npear\nplum')" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
