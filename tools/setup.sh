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

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

tools/install_lock.sh "$venv" "$lock"
echo "Installing our distributions: $*"
pip install --no-deps --no-build-isolation "${editable[@]}"
echo "Ready: $venv. To call its commands by name: export PATH=\"$(cd "$venv/bin" && pwd):\$PATH\""
