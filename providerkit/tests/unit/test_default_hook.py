"""The default hook in a real shell, on hosts of four kinds.

The programs that join are stand-ins: they register a "node" from the files that the hook wrote.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from bigfleet_providerkit.hostexec.contract import script_text

TAINTS = "gpu=true:NoSchedule startup:NoExecute"
KUBECTL = """#!/bin/sh
case "$*" in
*spec.taints*) cat "$NODE_FILE" ;;
*Ready*) [ ! -e "$NODE_FILE" ] || echo True ;;
*) exit 0 ;;
esac
"""
FLAG = r"""
sed -n 's/.*--register-with-taints=//p' "$BIGFLEET_HOST_ROOT/etc/default/kubelet" |
    tr -d '"' | tr ',' '\n' | sed 's/^\([^=:]*\):/\1=:/' >"$NODE_FILE"
"""
DROP_IN = r"""
cd "$BIGFLEET_HOST_ROOT/etc/rancher/KIND/config.yaml.d"
sed -n 's/^  - "\(.*\)"/\1/p' 50-bigfleet.yaml |
    sed 's/^\([^=:]*\):/\1=:/' >"$NODE_FILE"
"""
KUBELET_CONFIGURATION = r"""
tr '{' '\n' <"$BIGFLEET_HOST_ROOT/etc/kubernetes/kubelet/config.json.d/50-bigfleet.conf" |
    sed -n 's/"key":"\(.*\)","value":"\(.*\)","effect":"\([A-Za-z]*\)".*/\1=\2:\3/p' >"$NODE_FILE"
"""
CREDENTIALS = {
    "kubeadm": "etc/kubernetes/kubelet.conf",
    "k3s": "var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "rke2": "var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "nodeadm": "var/lib/kubelet/kubeconfig",
}
BLOBS = {
    "kubeadm": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n",
    "k3s": "server: https://10.0.0.1:6443\ntoken: secret\n",
    "rke2": "server: https://10.0.0.1:9345\ntoken: secret\n",
    "nodeadm": "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
}


class HookHost:
    """A host of one kind, as a folder with stand-ins."""

    def __init__(self, folder: Path, kind: str, registers: str = "") -> None:
        self.folder, self.kind = folder, kind
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.node = folder / "node"
        self.credentials = folder / CREDENTIALS[kind]
        joins = f'mkdir -p "$(dirname {self.credentials})"; touch {self.credentials}\n{registers}'
        self.put("kubectl", KUBECTL)
        self.put("systemctl", "#!/bin/sh\nexit 0\n")
        if kind in ("k3s", "rke2"):
            self.put(kind, "#!/bin/sh\n")
            self.put("systemctl", f'#!/bin/sh\ncase "$1" in enable) {joins} ;; esac\n')
        else:
            text = f'#!/bin/sh\ncase "$1" in join | init) {joins} ;; esac\n'
            self.put(kind, text)
        self.hook, self.blob = folder / "bootstrap", folder / "blob"
        self.hook.write_text(script_text("bootstrap.sh"))
        self.blob.write_text(BLOBS[kind])

    def put(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, *words: str, taints: str = "") -> tuple[int, str]:
        env = {
            "PATH": f"{self.bin}:/usr/bin:/bin", "BIGFLEET_BLOB": str(self.blob),
            "BIGFLEET_TIMEOUT": "3", "BIGFLEET_STATE_DIR": str(self.folder / "state"),
            "BIGFLEET_HOST_ROOT": str(self.folder), "BIGFLEET_TAINTS": taints,
            "NODE_FILE": str(self.node),
        }  # fmt: skip
        done = subprocess.run(
            ["sh", str(self.hook), *words], env=env, check=False, capture_output=True, text=True
        )
        return done.returncode, done.stderr


def registering(kind: str) -> str:
    """What a stand-in makes of the files of the hook."""
    if kind == "nodeadm":
        return KUBELET_CONFIGURATION
    return FLAG if kind == "kubeadm" else DROP_IN.replace("KIND", kind)


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_host_joins_with_its_taints_and_leaves(kind: str, tmp_path: Path) -> None:
    host = HookHost(tmp_path, kind, registering(kind))
    assert host.run("configure", "cluster-a", taints=TAINTS) == (0, "")
    assert host.node.read_text().split() == ["gpu=true:NoSchedule", "startup=:NoExecute"]
    assert host.run("configure", "cluster-a", taints=TAINTS) == (0, "")
    assert host.run("configure", "cluster-b")[0] == 4
    assert host.run("drain", "--grace", "0") == (0, "")
    assert not host.credentials.exists()
    left = [path for path in tmp_path.rglob("*bigfleet*") if path.is_file()]
    assert left == []
    assert host.run("drain", "--grace", "0") == (0, "")


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_taint_that_was_not_registered_is_a_failure(kind: str, tmp_path: Path) -> None:
    host = HookHost(tmp_path, kind, 'echo "other=:NoSchedule" >"$NODE_FILE"\n')
    code, text = host.run("configure", "cluster-a", taints=TAINTS)
    assert code == 1
    assert "joined without taint gpu=true:NoSchedule" in text


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_data_for_what_the_host_lacks_is_refused(kind: str, tmp_path: Path) -> None:
    host = HookHost(tmp_path, kind)
    (host.bin / kind).unlink()
    code, text = host.run("configure", "cluster-a")
    assert code == 1
    name = "k3s" if kind == "rke2" else kind
    assert f"the bootstrap data is for {name} and this host does not have it" in text


def test_data_of_no_known_form_is_refused(tmp_path: Path) -> None:
    host = HookHost(tmp_path, "kubeadm")
    host.blob.write_text("hello\n")
    code, text = host.run("configure", "cluster-a")
    assert (code, "neither a program" in text) == (1, True)


def test_the_drop_in_for_nodeadm_is_a_kubelet_configuration(tmp_path: Path) -> None:
    host = HookHost(tmp_path, "nodeadm", registering("nodeadm"))
    assert host.run("configure", "cluster-a", taints=TAINTS) == (0, "")
    (conf,) = tmp_path.rglob("50-bigfleet.conf")
    shown = json.loads(conf.read_text())
    assert re.match(r"kubelet\.config", shown["apiVersion"])
    assert shown["registerWithTaints"][1] == {
        "key": "startup", "value": "", "effect": "NoExecute",
    }  # fmt: skip
