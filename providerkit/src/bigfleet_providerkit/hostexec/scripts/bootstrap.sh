#!/bin/sh
# The default hook of a BigFleet host.
#   bootstrap configure CLUSTER   joins with the blob; ends with 0 only when the node is Ready
#   bootstrap drain --grace N     cordons, evicts, leaves the cluster and wipes its credentials
# Exit 4: the host belongs to another cluster. Exit 75: try again.
set -eu
STATE=${BIGFLEET_STATE_DIR:-/var/lib/bigfleet}
KUBECONFIG=${BIGFLEET_KUBELET_CONFIG:-/etc/kubernetes/kubelet.conf}
export KUBECONFIG
NODE=$(hostname | tr '[:upper:]' '[:lower:]')
DEADLINE=$(($(date +%s) + ${BIGFLEET_TIMEOUT:-300}))

fail() { echo "$2" >&2; exit "$1"; }
in_time() { [ "$(date +%s)" -lt "$DEADLINE" ]; }

node_ready() {
    kubectl get node "$NODE" -o \
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null | grep -qx True
}

configure() {
    cluster=$1
    mkdir -p "$STATE"
    present=$(cat "$STATE/cluster" 2>/dev/null || true)
    if [ -n "$present" ] && [ "$present" != "$cluster" ]; then
        fail 4 "this host belongs to cluster $present"
    fi
    if [ "$present" != "$cluster" ] || ! node_ready; then
        if [ "$(head -c 2 "$BIGFLEET_BLOB")" = '#!' ]; then
            program="$(dirname "$BIGFLEET_BLOB")/join"
            cp "$BIGFLEET_BLOB" "$program" && chmod 700 "$program"
            code=0
            "$program" || code=$?
            rm -f "$program"
            [ "$code" -eq 0 ] || fail "$code" "the bootstrap program ended with $code"
        else
            kubeadm join --config "$BIGFLEET_BLOB"
        fi
        printf '%s' "$cluster" >"$STATE/cluster"
    fi
    until node_ready; do
        in_time || fail 1 "node $NODE did not become Ready in time"
        sleep 2
    done
    if [ -n "${BIGFLEET_TAINTS:-}" ]; then
        # shellcheck disable=SC2086 - one word per taint
        kubectl taint node "$NODE" --overwrite $BIGFLEET_TAINTS >/dev/null || true
    fi
}

# Names of the pods on this node that have to leave: neither mirror pods nor those of a DaemonSet.
pods_to_evict() {
    kubectl get pods --all-namespaces --field-selector "spec.nodeName=$NODE" -o go-template='
{{range .items}}{{$skip := false}}
{{range .metadata.ownerReferences}}{{if eq .kind "DaemonSet"}}{{$skip = true}}{{end}}{{end}}
{{if .metadata.annotations}}{{if index .metadata.annotations "kubernetes.io/config.mirror"}}{{$skip = true}}{{end}}{{end}}
{{if not $skip}}{{.metadata.namespace}} {{.metadata.name}}
{{end}}{{end}}' | sed '/^[[:space:]]*$/d'
}

evict() {
    printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},"deleteOptions":{"gracePeriodSeconds":%s}}' \
        "$2" "$1" "$3" |
        kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - >/dev/null 2>&1 || true
}

drain() {
    grace=$1
    [ -e "$STATE/cluster" ] || exit 0
    kubectl patch node "$NODE" -p '{"spec":{"unschedulable":true}}' >/dev/null
    until_time=$(($(date +%s) + grace + 60))
    while :; do
        pods=$(pods_to_evict)
        [ -n "$pods" ] || break
        [ "$(date +%s)" -lt "$until_time" ] || fail 1 "pods are left over: $(echo "$pods" | head -n 3)"
        echo "$pods" | while read -r namespace name; do evict "$namespace" "$name" "$grace"; done
        sleep 2
    done
    kubeadm reset --force >/dev/null
    rm -f "$STATE/cluster" "$KUBECONFIG"
}

case "${1:-}" in
configure) configure "${2:?cluster}" ;;
drain) drain "${3:?grace}" ;;
*) fail 2 "usage: bootstrap configure CLUSTER | drain --grace N" ;;
esac
