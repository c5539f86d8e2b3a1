#!/bin/bash
# The hidden tests decide: reward 1.0 if all of them pass, else 0.0.
# They run on a fresh copy of the files that git knows or would add, so that caches, build products
# and other leftovers in the work tree have no say.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
app=${APP_DIR:-/app}
verifier=${VERIFIER_DIR:-/logs/verifier}
mkdir -p "$verifier"
rm -f "$verifier/reward.txt" "$verifier/reward.json"

reward=0.0
if python3 -I -B "$tests/judge.py" --app "$app" --tests "$tests" --ctrf "$verifier/ctrf.json"; then
    reward=1.0
fi
echo "$reward" > "$verifier/reward.txt"
printf '{"reward": %s}\n' "$reward" > "$verifier/reward.json"
echo "reward: $reward"
