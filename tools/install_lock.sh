#!/usr/bin/env bash
# Installs what a hashed lock says into an environment; nothing is resolved here.
#
# usage: tools/install_lock.sh VENV LOCK [LOCK_WITH_UV]
set -euo pipefail

venv=$1 lock=$2 with=${3:-requirements/dev.lock}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

# uv needs 4 s for what takes pip more than 40 s (warm caches, two cores). Where pip has been told about another index,
# pip does the work: uv would not know that index.
with_uv() {
    if "$venv/bin/python" -m pip config list | grep -qE 'index-url|no-index'; then return 1; fi
    local uv
    uv=$(command -v uv || true)
    if [ -z "$uv" ]; then
        uv=$venv/bin/uv
        awk '/^[^ ]/ {wanted = /^uv==/} wanted' "$with" >"$venv/uv.lock"
        pip install --require-hashes -r "$venv/uv.lock" || return 1
    fi
    "$uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r "$lock"
}

echo "Installing $(grep -c '==' "$lock") locked packages from $lock"
with_uv || { echo "Installing with pip" && pip install --require-hashes -r "$lock"; }
