#!/bin/bash
# Add the tests, run the suite, commit them on their own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd /app
git update-index -q --refresh || true
git apply --index "$here/tests.patch"
bash "$here/run_suite.sh"
git commit -qm 'Test what was asked for'
