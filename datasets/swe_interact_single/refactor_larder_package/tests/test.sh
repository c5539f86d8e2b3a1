#!/bin/bash
# The hidden tests decide: reward 1.0 if all of them pass, else 0.0. Where there is a rubric, every
# must-have item of it has to pass as well.
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
# The code under test has no business with the judge's key.
if env -u EVAL_API_KEY -u EVAL_BASE_URL \
    python3 -I -B "$tests/judge.py" --app "$app" --tests "$tests" --ctrf "$verifier/ctrf.json"; then
    reward=1.0
fi
if [ -f "$tests/rubrics.json" ]; then
    # Writes the reward, or none and an error if it cannot judge.
    python3 -I -B "$tests/evaluate_rubrics.py" --app "$app" --tests "$tests" \
        --verifier "$verifier" --tests-reward "$reward"
    status=$?
    if [ $status != 0 ]; then
        chmod -R a+rwX "$verifier" 2> /dev/null
        exit $status
    fi
else
    echo "$reward" > "$verifier/reward.txt"
    printf '{"reward": %s}\n' "$reward" > "$verifier/reward.json"
    echo "reward: $reward"
fi
