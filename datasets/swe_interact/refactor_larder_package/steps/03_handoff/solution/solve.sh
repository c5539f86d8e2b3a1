#!/bin/bash
set -euo pipefail
cd /app
base=$(cat /tmp/base_commit.txt)
mkdir -p /logs/agent
git log --reverse --stat "$base..HEAD" > /logs/agent/change-log.txt
git status --short > /logs/agent/final-status.txt
git diff "$base..HEAD" > /logs/agent/final.diff
