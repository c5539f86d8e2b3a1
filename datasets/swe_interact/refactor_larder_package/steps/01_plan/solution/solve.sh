#!/bin/bash
# Ask, agree on the plan, write it down.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ask() { python3 "$here/ask_user.py" "$1"; }

ask 'Hi! What would you like changed in this repository?'
ask 'What matters most to you about it?'
plan=$(cat "$here/plan.md")
reply=$(ask "Here is my plan, does it sound right?

$plan")
echo "$reply"
grep -qiE 'go|sure|fine|yes|yep|sounds' <<< "$reply"
printf '%s\n\nThe user said: %s\n' "$plan" "$reply" > /tmp/plan.md
