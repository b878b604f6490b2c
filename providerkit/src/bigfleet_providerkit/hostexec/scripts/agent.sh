#!/bin/sh
# The agent of a BigFleet host: asks its provider what to do, does it with the hook, says how it
# ended.
#   bigfleet-agent            polls until it is stopped
#   bigfleet-agent run FILE   does the command in FILE and prints the acknowledgement; prints nothing
#                             when the command has to be tried again
# Configuration: {"endpoint": ..., "machine_id": ..., "token": ..., "hook": ...}.
set -u
CONFIG=${BIGFLEET_AGENT_CONFIG:-/etc/bigfleet-agent/config.json}
CA=${BIGFLEET_AGENT_CA:-/etc/bigfleet-agent/ca.pem}
RUN=${BIGFLEET_RUN:-/run/bigfleet}
umask 077
mkdir -p "$RUN" && chmod 700 "$RUN" || exit 1

# One value of a flat JSON object; values hold neither quotes nor backslashes.
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\)\"\{0,1\}.*/\1/p" "$2" | head -n 1; }

ENDPOINT=$(field endpoint "$CONFIG")
BIGFLEET_MACHINE_ID=$(field machine_id "$CONFIG")
TOKEN=$(field token "$CONFIG")
HOOK=${BIGFLEET_HOOK:-$(field hook "$CONFIG")}
HOOK=${HOOK:-/opt/bigfleet/bootstrap}
QUERY=$(printf '%s' "$BIGFLEET_MACHINE_ID" | sed 's/%/%25/g; s/ /%20/g; s/&/%26/g; s/+/%2B/g; s/#/%23/g')
BODY="$RUN/command.json"
ACK="$RUN/ack.json"
BIGFLEET_BLOB="$RUN/blob"
export BIGFLEET_BLOB BIGFLEET_MACHINE_ID
# The acknowledgement stays: it is sent until it is answered, also by the next agent.
trap 'rm -f "$BIGFLEET_BLOB" "$RUN/error"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# The status of a call; 000 without an answer.
call() {
    curl --silent --show-error --cacert "$CA" --max-time 40 --write-out '%{http_code}' \
        --header "Authorization: Bearer $TOKEN" "$@" 2>/dev/null
}

answer() {
    text=$(tail -c 600 "$RUN/error" 2>/dev/null | tr -d '"\\' | tr '\n\t\r' '   ')
    printf '{"command_id": "%s", "ok": %s, "error": "%s"}\n' "$id" "$1" "$text"
}

done_is() { [ "$(cat "$RUN/done" 2>/dev/null)" = "$1" ]; }

perform() {
    id=$(field id "$1") operation=$(field operation "$1") type=$(field type "$1")
    : >"$RUN/error"
    case "$type" in
    probe)
        if done_is "$operation"; then answer true; else answer false; fi
        return
        ;;
    configure | drain) ;;
    *)
        echo "this agent does not know the command type $type" >"$RUN/error"
        answer false
        return
        ;;
    esac
    if done_is "$operation"; then
        answer true
        return
    fi
    BIGFLEET_TIMEOUT=$(field timeout_seconds "$1")
    BIGFLEET_PROVIDER=$(field provider "$1")
    BIGFLEET_PROVIDER_ID=$(field provider_id "$1")
    BIGFLEET_TAINTS=$(field taints "$1")
    export BIGFLEET_TIMEOUT BIGFLEET_PROVIDER BIGFLEET_PROVIDER_ID BIGFLEET_TAINTS
    rm -f "$RUN/done"
    code=0
    if [ "$type" = configure ]; then
        cluster=$(field cluster_id "$1")
        field blob "$1" | base64 -d >"$BIGFLEET_BLOB"
        "$HOOK" configure "$cluster" </dev/null 2>"$RUN/error" >/dev/null || code=$?
        rm -f "$BIGFLEET_BLOB"
    else
        "$HOOK" drain --grace "$(field grace_seconds "$1")" </dev/null 2>"$RUN/error" >/dev/null || code=$?
    fi
    case "$code" in
    0)
        printf '%s' "$operation" >"$RUN/done"
        answer true
        ;;
    75) ;;
    *)
        printf ' (exit code %s)' "$code" >>"$RUN/error"
        answer false
        ;;
    esac
}

# Sends the kept acknowledgement until the provider answers; a refusal (4xx) is an answer too.
acknowledge() {
    pause=1
    while [ -s "$ACK" ]; do
        case "$(call --output /dev/null --request POST --data-binary "@$ACK" \
            "$ENDPOINT/v1/ack?machine_id=$QUERY")" in
        2?? | 4??) rm -f "$ACK" ;;
        *)
            sleep "$pause"
            [ "$pause" -ge 16 ] || pause=$((pause * 2))
            ;;
        esac
    done
}

if [ "${1:-}" = run ]; then
    perform "$2"
    rm -f "$2"
    exit 0
fi
while :; do
    acknowledge
    case "$(call --output "$BODY" "$ENDPOINT/v1/command?machine_id=$QUERY")" in
    200)
        perform "$BODY" >"$ACK.part"
        rm -f "$BODY"
        if [ -s "$ACK.part" ]; then mv "$ACK.part" "$ACK"; else sleep 2; fi
        ;;
    204) ;;
    *) sleep 2 ;;
    esac
done
