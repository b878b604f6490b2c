#!/usr/bin/env bash
# Checks types, one distribution at a time: tests of two distributions may share a module's name.
#
# usage: tools/typecheck.sh MYPY DISTRIBUTION...
set -euo pipefail

mypy=$1
shift
cd "$(dirname "$0")/.."

check() {
    local name=$1 folder
    shift
    local present=()
    for folder in "$@"; do
        if [ -n "$(find "$folder" -name '*.py' -print -quit 2>/dev/null)" ]; then present+=("$folder"); fi
    done
    if [ ${#present[@]} -eq 0 ]; then return 0; fi
    echo "mypy ${present[*]}"
    "$mypy" --cache-dir ".mypy_cache/$name" "${present[@]}" || failed=1
}

failed=0

for dist in "$@"; do check "$dist" "$dist/src" "$dist/tests"; done
check repository conftest.py tools tests
exit "$failed"
