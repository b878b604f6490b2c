#!/usr/bin/env bash
# Creates a development environment: a venv, the hashed lock, and our distributions as editable
# installs. Nothing is resolved here; what is installed is what the lock says.
#
# usage: tools/setup.sh PYTHON VENV LOCK DISTRIBUTION...
set -euo pipefail

python=$1 venv=$2 lock=$3
shift 3

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    found=$("$python" --version 2>&1 | head -n 1 || true)
    echo "BigFleet needs Python 3.11 or newer, but '$python' is: ${found:-not found}." >&2
    echo "Install a newer one, or name it: make setup PYTHON=python3.13" >&2
    exit 1
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    echo "'$python' has no venv module. Install it (on Debian and Ubuntu: python3-venv)." >&2
    exit 1
fi

wanted=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ -x "$venv/bin/python" ]; then
    present=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' || true)
    [ "$present" = "$wanted" ] || rm -rf "$venv"
fi
if [ ! -x "$venv/bin/python" ]; then
    echo "Creating $venv with Python $wanted"
    "$python" -m venv "$venv"
fi

editable=()
for dist in "$@"; do editable+=(-e "./$dist"); done

with_pip() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
}

with_uv() {
    command -v uv >/dev/null || return 1
    uv pip install --quiet --python "$venv/bin/python" --require-hashes -r "$lock" && return 0
    echo "uv could not install the lock; trying pip" >&2
    return 1
}

echo "Installing $(grep -c '==' "$lock") locked packages from $lock"
with_uv || with_pip
echo "Installing our distributions: $*"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation "${editable[@]}"
echo "Ready: $venv"
