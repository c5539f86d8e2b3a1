# An agent for SWE-Interact tasks that really talks to the user and keeps to the shape, but has no
# idea what to build. A test puts ask_user.py before it. Questions before step 2 speak of no work:
# the user would read the whole repository first, and that takes a small model minutes.
set -euo pipefail
ask() { echo "> $1"; python3 /tmp/ask_user.py "$1"; }
cd /app
git config user.name >/dev/null || git config user.name Dev
git config user.email >/dev/null || git config user.email dev@example.com
case "$(head -n 1 "$HARBOR_INSTRUCTION_FILE")" in
    *'Step 1 of 5'*)
        ask 'Hi! What would you like to have?'
        ask 'I would put it into the command line. Does that sound right?'
        echo 'Add it to the command line.' >/tmp/plan.md
        ;;
    *'Step 2 of 5'*)
        git rev-parse HEAD >/tmp/base_commit.txt
        echo 'More to come.' >>README.md
        git commit -qam 'Say that there is more to come'
        ask 'I said in the README that there is more to come. It is committed, can you review it?'
        ;;
    *'Step 3 of 5'*)
        base=$(cat /tmp/base_commit.txt)
        mkdir -p /logs/agent
        git log --reverse --stat "$base..HEAD" >/logs/agent/change-log.txt
        git status --short >/logs/agent/final-status.txt
        git diff "$base..HEAD" >/logs/agent/final.diff
        ;;
    *'Step 4 of 5'*)
        printf 'import unittest\n' >tests/test_more.py
        git add tests
        git commit -qm 'Test what was asked for'
        ;;
    *'Step 5 of 5'*)
        mkdir -p /logs/agent
        git log -1 --stat HEAD >/logs/agent/test-change-log.txt
        git status --short >/logs/agent/test-final-status.txt
        git diff HEAD~1..HEAD >/logs/agent/test-final.diff
        ;;
esac
