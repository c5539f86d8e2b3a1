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

# How large the change is, for the report; it decides nothing.
git=(git -c "safe.directory=$app" -c core.fsmonitor=false --no-pager -C "$app")
"${git[@]}" add --all --intent-to-add
"${git[@]}" diff --numstat HEAD | awk '
    { files += 1; added += $1; removed += $2 }
    END { printf "{\"files\": %d, \"added\": %d, \"removed\": %d}\n", files, added, removed }
' > "$verifier/diff-metrics.json"
chmod -R a+rwX "$verifier" 2> /dev/null
exit 0
