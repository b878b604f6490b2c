#!/bin/sh
# The default hook of a BigFleet host.
#   bootstrap configure CLUSTER   joins with the blob; ends with 0 only when the node is Ready
#   bootstrap drain --grace N     cordons, evicts, leaves the cluster and wipes its credentials
# Joins and leaves by kubeadm, k3s, rke2 or nodeadm, whichever the blob is for and the host has; a
# blob that begins with #! is run. Taints are registered by the kubelet, since a node may not change
# its own. Exit 4: the host belongs to another cluster. Exit 75: try again.
set -eu
ROOT=${BIGFLEET_HOST_ROOT:-}
STATE=${BIGFLEET_STATE_DIR:-/var/lib/bigfleet}
NODE=$(hostname | tr '[:upper:]' '[:lower:]')
DEADLINE=$(($(date +%s) + ${BIGFLEET_TIMEOUT:-300}))
K3S=/etc/rancher/k3s RKE2=/etc/rancher/rke2 EKS=/etc/kubernetes/kubelet/config.json.d

fail() { echo "$2" >&2; exit "$1"; }
in_time() { [ "$(date +%s)" -lt "$DEADLINE" ]; }
has() { command -v "$1" >/dev/null 2>&1; }

# The kubelet's own credentials, and a kubectl to use them with.
use_kubelet() {
    KUBECONFIG=${BIGFLEET_KUBELET_CONFIG:-$ROOT/etc/kubernetes/kubelet.conf}
    for file in "$KUBECONFIG" \
        "$ROOT/var/lib/rancher/k3s/agent/kubelet.kubeconfig" \
        "$ROOT/var/lib/rancher/rke2/agent/kubelet.kubeconfig" "$ROOT/var/lib/kubelet/kubeconfig"; do
        if [ -e "$file" ]; then
            KUBECONFIG=$file
            break
        fi
    done
    export KUBECONFIG
    PATH="$PATH:$ROOT/var/lib/rancher/rke2/bin"
    KUBECTL=kubectl
    if ! has kubectl && has k3s; then KUBECTL="k3s kubectl"; fi
    has "${KUBECTL%% *}" || fail 1 "this host has no kubectl; add it to the image"
}

node_ready() {
    use_kubelet
    $KUBECTL get node "$NODE" -o \
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null | grep -qx True
}

# Where the kubelet of each distribution finds the taints that it registers its node with.
register_taints() {
    [ -n "${BIGFLEET_TAINTS:-}" ] || return 0
    list=$(echo "$BIGFLEET_TAINTS" | tr ' ' ',')
    if has kubeadm; then
        mkdir -p "$ROOT/etc/default" "$ROOT/etc/sysconfig"
        for file in "$ROOT/etc/default/kubelet" "$ROOT/etc/sysconfig/kubelet"; do
            echo "KUBELET_EXTRA_ARGS=\"--register-with-taints=$list\"" >"$file"
        done
    fi
    for folder in "$K3S" "$RKE2"; do
        has "$(basename "$folder")" || continue
        mkdir -p "$ROOT$folder/config.yaml.d"
        {
            echo 'node-taint+:'
            for taint in $BIGFLEET_TAINTS; do echo "  - \"$taint\""; done
        } >"$ROOT$folder/config.yaml.d/50-bigfleet.yaml"
    done
    if has nodeadm; then
        mkdir -p "$ROOT$EKS"
        json=$(for taint in $BIGFLEET_TAINTS; do
            pair=${taint%:*}
            value=
            case "$pair" in *=*) value=${pair#*=} ;; esac
            printf '{"key":"%s","value":"%s","effect":"%s"},' "${pair%%=*}" "$value" "${taint##*:}"
        done)
        printf '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","registerWithTaints":[%s]}' \
            "${json%,}" >"$ROOT$EKS/50-bigfleet.conf"
    fi
}

check_taints() {
    [ -n "${BIGFLEET_TAINTS:-}" ] || return 0
    there=$($KUBECTL get node "$NODE" -o \
        'jsonpath={range .spec.taints[*]}{.key}={.value}:{.effect}{"\n"}{end}')
    for taint in $BIGFLEET_TAINTS; do
        pair=${taint%:*}
        case "$pair" in *=*) ;; *) pair="$pair=" ;; esac
        echo "$there" | grep -Fqx "$pair:${taint##*:}" ||
            fail 1 "node $NODE joined without taint $taint; the join has to let the kubelet register it"
    done
}

join_agent() {
    has "$1" || fail 1 "the bootstrap data is for $1 and this host does not have it"
    mkdir -p "$ROOT/etc/rancher/$1"
    (umask 077 && cp "$BIGFLEET_BLOB" "$ROOT/etc/rancher/$1/config.yaml")
    systemctl enable --now "$1-agent" || fail 1 "the service $1-agent did not start"
}

join() {
    if [ "$(head -c 2 "$BIGFLEET_BLOB")" = '#!' ]; then
        program="$(dirname "$BIGFLEET_BLOB")/join"
        cp "$BIGFLEET_BLOB" "$program" && chmod 700 "$program"
        code=0
        "$program" || code=$?
        rm -f "$program"
        [ "$code" -eq 0 ] || fail "$code" "the bootstrap program ended with $code"
    elif grep -q 'kubeadm\.k8s\.io' "$BIGFLEET_BLOB"; then
        has kubeadm || fail 1 "the bootstrap data is for kubeadm and this host does not have it"
        kubeadm join --config "$BIGFLEET_BLOB" || fail 1 "kubeadm join failed"
    elif grep -q 'node\.eks\.aws' "$BIGFLEET_BLOB"; then
        has nodeadm || fail 1 "the bootstrap data is for nodeadm and this host does not have it"
        nodeadm init --config-source "file://$BIGFLEET_BLOB" || fail 1 "nodeadm init failed"
    elif grep -q '^server:' "$BIGFLEET_BLOB"; then
        if has rke2; then join_agent rke2; else join_agent k3s; fi
    else
        fail 1 "the bootstrap data is neither a program (#!) nor for kubeadm, k3s, rke2 or nodeadm"
    fi
}

configure() {
    cluster=$1
    mkdir -p "$STATE"
    present=$(cat "$STATE/cluster" 2>/dev/null || true)
    if [ -n "$present" ] && [ "$present" != "$cluster" ]; then
        fail 4 "this host belongs to cluster $present"
    fi
    if [ "$present" != "$cluster" ] || ! node_ready; then
        register_taints
        join
        printf '%s' "$cluster" >"$STATE/cluster"
    fi
    until node_ready; do
        in_time || fail 1 "node $NODE did not become Ready in time"
        sleep 2
    done
    check_taints
}

leave() {
    case "$KUBECONFIG" in
    */rancher/k3s/* | */rancher/rke2/*)
        kind=k3s
        case "$KUBECONFIG" in */rke2/*) kind=rke2 ;; esac
        systemctl disable --now "$kind-agent" >/dev/null || fail 1 "the service $kind-agent did not stop"
        if has "$kind-killall.sh"; then "$kind-killall.sh" >/dev/null 2>&1 || true; fi
        rm -rf "$ROOT/etc/rancher/$kind/config.yaml" "$ROOT/etc/rancher/node" \
            "$ROOT/etc/rancher/$kind/config.yaml.d/50-bigfleet.yaml" "$ROOT/var/lib/rancher/$kind/agent"
        ;;
    */var/lib/kubelet/kubeconfig)
        systemctl disable --now kubelet >/dev/null || fail 1 "the kubelet did not stop"
        rm -rf "$ROOT$EKS/50-bigfleet.conf" "$ROOT/var/lib/kubelet/pki"
        ;;
    *)
        has kubeadm || fail 1 "this host cannot leave: it has neither kubeadm, k3s, rke2 nor nodeadm's kubelet"
        kubeadm reset --force >/dev/null || fail 1 "kubeadm reset failed"
        rm -f "$ROOT/etc/default/kubelet" "$ROOT/etc/sysconfig/kubelet"
        ;;
    esac
    rm -f "$STATE/cluster" "$KUBECONFIG"
}

# Names of the pods on this node that have to leave: neither mirror pods nor those of a DaemonSet.
pods_to_evict() {
    $KUBECTL get pods --all-namespaces --field-selector "spec.nodeName=$NODE" -o go-template='
{{range .items}}{{$skip := false}}
{{range .metadata.ownerReferences}}{{if eq .kind "DaemonSet"}}{{$skip = true}}{{end}}{{end}}
{{if .metadata.annotations}}{{if index .metadata.annotations "kubernetes.io/config.mirror"}}{{$skip = true}}{{end}}{{end}}
{{if not $skip}}{{.metadata.namespace}} {{.metadata.name}}
{{end}}{{end}}' | sed '/^[[:space:]]*$/d'
}

evict() {
    printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},"deleteOptions":{"gracePeriodSeconds":%s}}' \
        "$2" "$1" "$3" |
        $KUBECTL create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - >/dev/null 2>&1 || true
}

drain() {
    grace=$1
    [ -e "$STATE/cluster" ] || exit 0
    use_kubelet
    $KUBECTL patch node "$NODE" -p '{"spec":{"unschedulable":true}}' >/dev/null
    until_time=$(($(date +%s) + grace + 60))
    while :; do
        pods=$(pods_to_evict)
        [ -n "$pods" ] || break
        [ "$(date +%s)" -lt "$until_time" ] || fail 1 "pods are left over: $(echo "$pods" | head -n 3)"
        echo "$pods" | while read -r namespace name; do evict "$namespace" "$name" "$grace"; done
        sleep 2
    done
    leave
}

case "${1:-}" in
configure) configure "${2:?cluster}" ;;
drain) drain "${3:?grace}" ;;
*) fail 2 "usage: bootstrap configure CLUSTER | drain --grace N" ;;
esac
