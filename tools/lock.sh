#!/usr/bin/env bash
# Writes requirements/dev.lock from requirements/dev.in: one file for every supported Python,
# with hashes, without comments about where anything came from.
#
# usage: tools/lock.sh PYTHON
set -euo pipefail

python=$1
cd "$(dirname "$0")/.."

if command -v uv >/dev/null; then
    uv=uv
else
    bootstrap=.venv-lock
    [ -x "$bootstrap/bin/uv" ] || {
        "$python" -m venv "$bootstrap"
        "$bootstrap/bin/python" -m pip install --quiet --disable-pip-version-check uv
    }
    uv=$bootstrap/bin/uv
fi

"$uv" pip compile requirements/dev.in --output-file requirements/dev.lock --quiet --upgrade \
    --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-annotate --no-header
sed -i.bak '/^--/d' requirements/dev.lock && rm -f requirements/dev.lock.bak
echo "Wrote requirements/dev.lock: $(grep -c '==' requirements/dev.lock) packages"
