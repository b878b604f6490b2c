#!/usr/bin/env bash
# Sees to a Prometheus and a promtool for the tests of queries and alert rules: Debian's package,
# installed only where it is missing and where we may. Elsewhere it says loudly what does not run.
set -euo pipefail

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    exit 0
fi
lacks() {
    printf '\n!!! %s\n!!! Tests of promised queries and alert rules will NOT RUN.\n\n' "$1" >&2
    exit 0
}
command -v apt-get >/dev/null || lacks "No Prometheus here, and no apt-get to install it with"
[ "$(id -u)" = 0 ] || lacks "No Prometheus here, and only root may install it: apt-get install prometheus"

# A service that starts by itself would only be in the way of the ones that tests start.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus; }
install >/dev/null 2>&1 || { apt-get update -qq && install >/dev/null; } \
    || lacks "Debian's package prometheus could not be installed"
echo "Prometheus: $(prometheus --version 2>&1 | head -1)"
