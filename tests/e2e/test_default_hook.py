"""The default hook on hosts that join a real API server.

The kubeadm host runs the real kubeadm and the real kubelet. Hosts of k3s, rke2 and nodeadm are
simulated: stand-ins register a Node from the files that the hook wrote, as `real_node` says.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from real_node import HERE, HostOfATest, a_host, join_configuration, joinable_plane

from bigfleet_providerkit.substrate import CommandKind
from kube.plane import ControlPlane

TAINTS = ("gpu=true:NoSchedule", "starting:NoExecute")
REGISTERED = [
    {"key": "gpu", "value": "true", "effect": "NoSchedule"},
    {"key": "starting", "effect": "NoExecute"},
]
OWN = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf"
RANCHER = "server: https://192.0.2.1:9345\ntoken: secret\n"
BLOBS = {
    "k3s": RANCHER,
    "rke2": RANCHER,
    "nodeadm": "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n",
}
SIMULATED = """#!/bin/sh
case "$1" in init | enable) exec {python} {register} {kind} /opt/node-credentials ;; esac
"""


@pytest.fixture(scope="module")
def joinable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster that nodes really join."""
    with joinable_plane(tmp_path_factory.mktemp("joinable")) as plane:
        yield plane


@pytest.fixture
def host(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HostOfATest]:
    name = "bf-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    with a_host(tmp_path, name, kubeadm=True) as started:
        yield started


def key_of(plane: ControlPlane) -> str:
    public = x509.load_pem_x509_certificate(plane.authority.certificate).public_key()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(public.public_bytes(serialization.Encoding.DER, spki)).hexdigest()


def taints_of(plane: ControlPlane, name: str) -> list[dict[str, str]]:
    """The taints of a node, less those that Kubernetes gives and takes by itself."""
    spec = plane.api.get(f"/api/v1/nodes/{name}")["spec"]
    own = [taint for taint in spec.get("taints", []) if "kubernetes.io" not in taint["key"]]
    return sorted(own, key=lambda taint: str(taint["key"]))


def is_ready(plane: ControlPlane, name: str) -> bool:
    conditions = plane.api.get(f"/api/v1/nodes/{name}")["status"]["conditions"]
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def pod_on(plane: ControlPlane, node: str) -> str:
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{node}"},
        "spec": {
            "nodeName": node, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "web", "image": "none"}],
        },
    }  # fmt: skip
    plane.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    return f"/api/v1/namespaces/default/pods/web-{node}"


def test_a_host_joins_by_the_real_kubeadm_and_leaves_without_credentials(
    joinable: ControlPlane, host: HostOfATest
) -> None:
    blob = join_configuration(joinable, key_of(joinable))
    joined = host.hook(CommandKind.CONFIGURE, "op-1", blob=blob, taints=TAINTS)
    assert joined.code == 0, joined.output
    assert is_ready(joinable, host.name)
    assert taints_of(joinable, host.name) == REGISTERED
    node = joinable.api.get(f"/api/v1/nodes/{host.name}")
    assert node["metadata"]["labels"]["example.com/pool"] == "real"
    assert host.run("cat /run/bigfleet/done; ls /run/bigfleet").output == "op-1done\n"

    again = host.hook(CommandKind.CONFIGURE, "op-1", blob=blob, taints=TAINTS)
    assert again.code == 0, again.output
    other = host.hook(CommandKind.CONFIGURE, "op-2", blob=blob, cluster="west")
    assert (other.code, "belongs to cluster east" in other.output) == (4, True)

    pod = pod_on(joinable, host.name)
    left = host.hook(CommandKind.DRAIN, "op-3")
    assert left.code == 0, left.output
    joinable.wait(lambda: not exists(joinable, pod), "the pod was not evicted")
    assert joinable.api.get(f"/api/v1/nodes/{host.name}")["spec"]["unschedulable"]
    assert host.run("find /etc/kubernetes /var/lib/kubelet -type f").output == ""
    assert host.run("pgrep --runstates D,R,S,T kubelet").output == ""
    assert host.hook(CommandKind.DRAIN, "op-3").code == 0

    joinable.api.call("DELETE", f"/api/v1/nodes/{host.name}")
    back = host.hook(CommandKind.CONFIGURE, "op-4", blob=blob, cluster="west")
    assert back.code == 0, back.output
    assert taints_of(joinable, host.name) == []


def exists(plane: ControlPlane, path: str) -> bool:
    name = path.rpartition("/")[2]
    pods = plane.api.get(path.rpartition("/")[0])["items"]
    return any(pod["metadata"]["name"] == name for pod in pods)


def test_a_node_may_not_taint_itself_so_the_kubelet_registers_taints(
    joinable: ControlPlane, host: HostOfATest
) -> None:
    blob = join_configuration(joinable, key_of(joinable))
    assert host.hook(CommandKind.CONFIGURE, "op-1", blob=blob).code == 0
    refused = host.run(f"{OWN} taint node {host.name} gpu=true:NoSchedule")
    assert refused.code != 0
    assert "is not allowed to modify taints" in refused.output


def test_a_join_that_kubeadm_refuses_fails_with_its_reason(
    joinable: ControlPlane, host: HostOfATest
) -> None:
    blob = join_configuration(joinable, "0" * 64) + "timeouts: {discovery: 2s}\n"
    failed = host.hook(CommandKind.CONFIGURE, "op-1", blob=blob)
    assert failed.code == 1
    assert "none of the public keys" in failed.output
    assert failed.output.splitlines()[-1] == "kubeadm join failed"
    assert host.run("ls /run/bigfleet").output == ""


@pytest.mark.parametrize("kind", ["k3s", "rke2", "nodeadm"])
def test_a_simulated_host_joins_by_what_it_has_and_leaves_without_credentials(
    joinable: ControlPlane, tmp_path: Path, kind: str
) -> None:
    name = f"simulated-{kind}"
    with a_host(tmp_path, name, kubeadm=False) as host:
        identity = joinable.user(f"system:node:{name}", "system:nodes")
        host.write("opt/node-credentials", identity.read_text("utf-8"))
        stand_in = SIMULATED.format(
            python=sys.executable, register=HERE / "register_node.py", kind=kind
        )
        host.program(kind, stand_in if kind == "nodeadm" else "#!/bin/sh\n")
        host.program("systemctl", "#!/bin/sh\n" if kind == "nodeadm" else stand_in)

        joined = host.hook(CommandKind.CONFIGURE, "op-1", blob=BLOBS[kind], taints=TAINTS)
        assert joined.code == 0, joined.output
        assert is_ready(joinable, name)
        assert taints_of(joinable, name) == REGISTERED
        left = host.hook(CommandKind.DRAIN, "op-2")
        assert left.code == 0, left.output
        assert joinable.api.get(f"/api/v1/nodes/{name}")["spec"]["unschedulable"]
        assert host.run("find /var/lib -type f").output == ""
        assert host.run("find /etc -name '*bigfleet*'").output == ""
