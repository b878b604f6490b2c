"""Stands in for the agent of k3s or rke2, or for nodeadm: registers a Node and calls it Ready.

It reads what the real one would read from the files that the hook wrote, the taints above all, and
speaks to the real API server as that node's kubelet. Nothing else of a distribution is here.

    python register_node.py KIND KUBECONFIG     on a host of `real_node`
"""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

CREDENTIALS = {
    "k3s": "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "rke2": "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "nodeadm": "/var/lib/kubelet/kubeconfig",
}
READY = {"type": "Ready", "status": "True", "reason": "Simulated", "message": "no kubelet is here"}


def taint(text: str) -> dict[str, str]:
    """A taint as `--node-taint` takes it."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def agent_taints(kind: str) -> list[dict[str, str]]:
    """What an agent of Rancher's reads: its configuration, and the files beside it in order."""
    folder = Path("/etc/rancher") / kind
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    if not config["server"].startswith("https://"):
        raise SystemExit(f"{kind}: the configuration names no server")
    words = list(config.get("node-taint", []))
    for more in sorted((folder / "config.yaml.d").glob("*.yaml")):
        words += yaml.safe_load(more.read_text("utf-8")).get("node-taint+", [])
    return [taint(word) for word in words]


def nodeadm_taints() -> list[dict[str, str]]:
    """What a kubelet of nodeadm's reads: its drop-in configuration files in order."""
    found: list[dict[str, str]] = []
    for place in sorted(Path("/etc/kubernetes/kubelet/config.json.d").glob("*.conf")):
        config: dict[str, Any] = json.loads(place.read_text("utf-8"))
        found = config.get("registerWithTaints", found)
    return found


def main(kind: str, kubeconfig: str) -> None:
    """Register the node, and leave its credentials where the real one does."""
    taints = nodeadm_taints() if kind == "nodeadm" else agent_taints(kind)
    place = Path(CREDENTIALS[kind])
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(kubeconfig, place)
    name = socket.gethostname()
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints},
        "status": {"conditions": [READY]},
    }  # fmt: skip
    kubectl = ["kubectl", f"--kubeconfig={place}", "create", "-f", "-"]
    subprocess.run(kubectl, input=json.dumps(node), text=True, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
