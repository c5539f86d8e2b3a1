#!/bin/bash
# Check the shape of what was handed in, put the implementation alone into the work tree, and let
# canonical_test.sh decide. A wrong shape is a scored zero: reward 0.0, the reason on stdout and in
# structural.json, exit status 0. (reward.json may hold numbers only.)
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
app=${APP_DIR:-/app}
verifier=${VERIFIER_DIR:-/logs/verifier}
agent=${AGENT_LOGS_DIR:-/logs/agent}
artifacts=${ARTIFACTS_DIR:-/logs/artifacts}
base_file=${BASE_COMMIT_FILE:-/tmp/base_commit.txt}
mkdir -p "$verifier" "$agent" "$artifacts"
rm -f "$verifier/reward.txt" "$verifier/reward.json" "$verifier/structural.json"

git() {
    command git -c "safe.directory=$app" -c core.fsmonitor=false -c core.hooksPath=/dev/null \
        --no-pager -C "$app" "$@"
}

# Who runs the task may not be root: leave nothing behind that they cannot move away.
open_up() { chmod -R a+rwX "$verifier" "$agent" "$artifacts" 2> /dev/null; }

fail() { # <code> <reason>
    echo 0.0 > "$verifier/reward.txt"
    echo '{"reward": 0.0}' > "$verifier/reward.json"
    printf '{"reward": 0.0, "code": "%s", "error": "%s"}\n' "$1" "$2" > "$verifier/structural.json"
    echo "structural failure ($1): $2"
    open_up
    exit 0
}

python3 -I "$tests/export_user_logs.py" "$verifier/user-server"

commit() { git rev-parse --quiet --verify "$1^{commit}" 2> /dev/null; }

git rev-parse --git-dir > /dev/null 2>&1 || fail no_repository "there is no git repository any more"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
    fail dirty_tree "tracked files have uncommitted changes"
[ -s "$base_file" ] || fail no_base "/tmp/base_commit.txt is missing or empty"
name=$(head -c 200 "$base_file" | tr -d '[:space:]')
base=$(commit "$name") || fail bad_base "/tmp/base_commit.txt does not name a commit"
test_commit=$(commit HEAD) || fail no_commit "HEAD is not a commit"
implementation=$(commit HEAD~1) || fail no_parent "HEAD has no parent: nothing was committed"
[ "$test_commit" != "$base" ] || fail nothing_committed "HEAD is the base commit"
[ "$implementation" != "$base" ] ||
    fail not_separate "implementation and tests are not in separate commits"
git merge-base --is-ancestor "$base" "$implementation" ||
    fail rewritten_history "the base commit is not an ancestor of HEAD"

for folder in "$agent" "$artifacts" "$verifier"; do
    git format-patch -1 --stdout "$test_commit" > "$folder/test-commit.patch"
    git diff "$implementation" "$test_commit" > "$folder/test.diff"
done
git diff --binary "$base" "$implementation" > "$artifacts/model.patch"
[ -s "$verifier/test.diff" ] || fail empty_test_commit "the test commit changes nothing"

{
    git reset --quiet --hard "$implementation" &&
        git clean -ffdxq &&
        git reset --quiet --soft "$base" &&
        git reset --quiet
} || fail cannot_reset "the work tree could not be set to the implementation"
open_up

exec bash "$tests/canonical_test.sh"
