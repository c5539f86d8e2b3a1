#!/bin/bash
set -euo pipefail
cd /app
mkdir -p /logs/agent
git log -1 --stat HEAD > /logs/agent/test-change-log.txt
git status --short > /logs/agent/test-final-status.txt
git diff HEAD~1..HEAD > /logs/agent/test-final.diff
