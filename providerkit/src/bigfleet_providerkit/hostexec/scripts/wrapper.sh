#!/bin/sh
# Runs the hook of a BigFleet host. The blob, where there is one, lies in BIGFLEET_BLOB before the
# hook starts and is gone when it ends, however it ends. After success the operation's id stays in
# BIGFLEET_RUN/done: a provider that was restarted asks for it.
set -u
umask 077
mkdir -p "$BIGFLEET_RUN" && chmod 700 "$BIGFLEET_RUN" || exit 1
BIGFLEET_BLOB="$BIGFLEET_RUN/blob"
export BIGFLEET_BLOB

# A probe leaves the blob alone: the hook of another call may be at work on it.
bigfleet_clean() {
    [ "$BIGFLEET_KIND" = probe ] || rm -f "$BIGFLEET_BLOB" "$BIGFLEET_BLOB".*
}
trap 'bigfleet_clean' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

case "$BIGFLEET_KIND" in
probe)
    [ "$(cat "$BIGFLEET_RUN/done" 2>/dev/null)" = "$BIGFLEET_OPERATION" ]
    exit $?
    ;;
configure)
    if [ "$BIGFLEET_BLOB_FROM" = stdin ]; then
        cat >"$BIGFLEET_BLOB.part" && mv "$BIGFLEET_BLOB.part" "$BIGFLEET_BLOB" || exit 75
    elif [ "$BIGFLEET_BLOB_FROM" != "$BIGFLEET_BLOB" ]; then
        mv "$BIGFLEET_BLOB_FROM" "$BIGFLEET_BLOB" || exit 75
    fi
    chmod 600 "$BIGFLEET_BLOB" || exit 75
    "$BIGFLEET_HOOK" configure "$BIGFLEET_CLUSTER" </dev/null
    ;;
drain)
    "$BIGFLEET_HOOK" drain --grace "$BIGFLEET_GRACE" </dev/null
    ;;
esac
bigfleet_code=$?
if [ "$bigfleet_code" -eq 0 ]; then
    printf '%s' "$BIGFLEET_OPERATION" >"$BIGFLEET_RUN/done"
else
    rm -f "$BIGFLEET_RUN/done"
fi
exit "$bigfleet_code"
