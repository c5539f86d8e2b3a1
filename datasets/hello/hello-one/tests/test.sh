#!/bin/sh
# The reward is what stands in reward.txt; the exit status of this script decides nothing.
if [ "$(cat /app/greeting.txt)" = 'Hello, harbor!' ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
