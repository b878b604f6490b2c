#!/bin/sh
# The hook of an imitated host: it obeys the levers of the test instead of joining a cluster.
# GUEST_<KIND>_* come from the engine; what was done goes to $GUEST/history, one line a run:
#   kind|cluster or grace|exit code|SHA-256 of the blob|taints|provider id
set -u
STATE="$GUEST/var/lib/bigfleet"
mkdir -p "$STATE"
present=$(cat "$STATE/cluster" 2>/dev/null)

finish() {
    printf '%s|%s|%s|%s|%s|%s\n' "$kind" "$what" "$1" "${digest:-}" \
        "${BIGFLEET_TAINTS:-}" "${BIGFLEET_PROVIDER_ID:-}" >>"$GUEST/history"
    exit "$1"
}
obey() {
    [ "$1" = 0 ] || sleep "$1"
    [ "$2" = 0 ] || exec sleep 600
    [ -z "$4" ] || printf '%s\n' "$4" >&2
    [ "$3" -eq 0 ] || finish "$3"
}

kind=${1:-} what=${2:-}
case "$kind" in
configure)
    if [ ! -f "$BIGFLEET_BLOB" ]; then echo "there is no $BIGFLEET_BLOB" >&2; finish 1; fi
    digest=$(sha256sum <"$BIGFLEET_BLOB") digest=${digest%% *}
    if [ -n "$present" ] && [ "$present" != "$what" ]; then
        echo "this host belongs to cluster $present" >&2
        finish 4
    fi
    obey "$GUEST_CONFIGURE_READY_AFTER" "$GUEST_CONFIGURE_HANG" "$GUEST_CONFIGURE_EXIT_CODE" \
        "$GUEST_CONFIGURE_STDERR"
    printf '%s' "$what" >"$STATE/cluster"
    ;;
drain)
    what=${3:-}
    obey "$GUEST_DRAIN_READY_AFTER" "$GUEST_DRAIN_HANG" "$GUEST_DRAIN_EXIT_CODE" \
        "$GUEST_DRAIN_STDERR"
    rm -f "$STATE/cluster"
    ;;
*) echo "usage: configure CLUSTER | drain --grace N" >&2; exit 2 ;;
esac
finish 0
