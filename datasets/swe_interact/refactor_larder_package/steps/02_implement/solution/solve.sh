#!/bin/bash
# Build it in passes: each patch answers what the user said about the pass before.
# A patch begins with "Subject:" (the commit message) and, but for the first, "Answers:" (an
# extended regular expression for the remark that it answers).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
header() { sed -n "s/^$1: //p;/^diff /q" "$2"; }
ask() { python3 "$here/ask_user.py" "$1"; }

test -s /tmp/plan.md
cd /app
git config user.name > /dev/null || git config user.name Dev
git config user.email > /dev/null || git config user.email dev@example.com
git rev-parse HEAD > /tmp/base_commit.txt

reply=
for patch in "$here"/patches/*.patch; do
    wanted=$(header Answers "$patch")
    if ! grep -qiE -e "$wanted" <<< "$reply"; then
        echo "$(basename "$patch") answers /$wanted/, but the user said: $reply"
        exit 1
    fi
    subject=$(header Subject "$patch")
    git update-index -q --refresh || true
    git apply --index "$patch"
    git commit -qm "$subject"
    echo "> $subject"
    reply=$(ask "$subject. It is committed, can you review it?")
    echo "$reply"
done
grep -qi 'ship it' <<< "$reply"
