#!/bin/sh
# The agent of a BigFleet host: asks its provider what to do, does it with the hook, says how it
# ended. Configuration: {"endpoint": ..., "machine_id": ..., "token": ..., "hook": ...}.
set -u
CONFIG=${BIGFLEET_AGENT_CONFIG:-/etc/bigfleet-agent/config.json}
CA=${BIGFLEET_AGENT_CA:-/etc/bigfleet-agent/ca.pem}
RUN=${BIGFLEET_RUN:-/run/bigfleet}
umask 077
mkdir -p "$RUN"

# One value of a flat JSON object; values hold neither quotes nor backslashes.
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\)\"\{0,1\}.*/\1/p" "$2" | head -n 1; }

ENDPOINT=$(field endpoint "$CONFIG")
MACHINE=$(field machine_id "$CONFIG")
TOKEN=$(field token "$CONFIG")
HOOK=${BIGFLEET_HOOK:-$(field hook "$CONFIG")}
HOOK=${HOOK:-/opt/bigfleet/bootstrap}
QUERY=$(printf '%s' "$MACHINE" | sed 's/%/%25/g; s/ /%20/g; s/&/%26/g; s/+/%2B/g; s/#/%23/g')
BODY="$RUN/command.json"
trap 'rm -f "$BODY" "$RUN/blob" "$RUN/error"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

call() {
    curl --silent --show-error --cacert "$CA" --max-time 40 \
        --header "Authorization: Bearer $TOKEN" "$@"
}

ack() {
    text=$(tail -c 600 "$RUN/error" 2>/dev/null | tr -d '"\\' | tr '\n\t' '  ')
    printf '{"command_id": "%s", "ok": %s, "error": "%s"}' "$1" "$2" "$text" |
        call --request POST --data-binary @- "$ENDPOINT/v1/ack?machine_id=$QUERY" >/dev/null
}

while :; do
    status=$(call --output "$BODY" --write-out '%{http_code}' \
        "$ENDPOINT/v1/command?machine_id=$QUERY" 2>/dev/null)
    case "$status" in
    200) ;;
    204) continue ;;
    *) sleep 2; continue ;;
    esac
    id=$(field id "$BODY")
    if [ "$(cat "$RUN/done" 2>/dev/null)" = "$id" ]; then
        : >"$RUN/error"
        ack "$id" true
        continue
    fi
    BIGFLEET_BLOB="$RUN/blob"
    BIGFLEET_MACHINE_ID=$MACHINE
    BIGFLEET_TIMEOUT=$(field timeout_seconds "$BODY")
    BIGFLEET_PROVIDER_ID=$(field provider_id "$BODY")
    BIGFLEET_TAINTS=$(field taints "$BODY")
    export BIGFLEET_BLOB BIGFLEET_MACHINE_ID BIGFLEET_TIMEOUT BIGFLEET_PROVIDER_ID BIGFLEET_TAINTS
    code=0
    case "$(field type "$BODY")" in
    configure)
        field blob "$BODY" | base64 -d >"$BIGFLEET_BLOB"
        "$HOOK" configure "$(field cluster_id "$BODY")" </dev/null 2>"$RUN/error" >/dev/null || code=$?
        ;;
    drain) "$HOOK" drain --grace "$(field grace_seconds "$BODY")" </dev/null 2>"$RUN/error" >/dev/null || code=$? ;;
    esac
    rm -f "$BIGFLEET_BLOB" "$BODY"
    if [ "$code" -eq 0 ]; then
        printf '%s' "$id" >"$RUN/done"
        ack "$id" true
    elif [ "$code" -ne 75 ]; then
        ack "$id" false
    else
        sleep 2
    fi
done
