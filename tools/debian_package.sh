#!/usr/bin/env bash
# Installs a Debian package that some tests need, only where its programs are missing and where we
# may. Elsewhere it says loudly what does not run.
#
# usage: tools/debian_package.sh PACKAGE WHAT-IS-TESTED-WITH-IT PROGRAM...
set -euo pipefail

package=$1 tested=$2
shift 2

missing=0
for program in "$@"; do command -v "$program" >/dev/null || missing=1; done
[ "$missing" = 1 ] || exit 0

lacks() {
    printf '\n!!! %s\n!!! Tests of %s will NOT RUN.\n\n' "$1" "$tested" >&2
    exit 0
}
command -v apt-get >/dev/null || lacks "No $package here, and no apt-get to install it with"
[ "$(id -u)" = 0 ] || lacks "No $package here, and only root may install it: apt-get install $package"

# A service that starts by itself would only be in the way of the ones that tests start.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"; }
install >/dev/null 2>&1 || { apt-get update -qq && install >/dev/null; } \
    || lacks "Debian's package $package could not be installed"
echo "$package: $("$1" --version 2>&1 | head -1)"
