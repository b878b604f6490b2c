"""Hosts that join a real API server, for tests of the default hook.

A `HostOfATest` is a set of namespaces with a name, processes and some folders of its own: /etc,
/run, /opt, /var/lib and /var/log. On it the kit's wrapper runs the default hook as a channel would.
What is real on it: kubeadm, the kubelet, kubectl. What is simulated: `systemctl`, which starts the
kubelet as kubeadm's unit does, the container runtime (`stub_cri`), and k3s, rke2 and nodeadm:
their stand-ins (`register_node`) register a Node from the files that the hook wrote.
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bigfleet_providerkit.hostexec.contract import HookCall, command_for, script_text
from bigfleet_providerkit.substrate import CommandKind
from kube import binaries, ports
from kube.plane import ControlPlane, control_plane
from kube.processes import Process

HERE = Path(__file__).parent
TOKEN = "abcdef.0123456789abcdef"
OWN_FOLDERS = ("etc", "run", "opt", "var/lib", "var/log")
SOCKET = "/run/containerd/containerd.sock"
START_SECONDS = 20.0

SETTLE_IN = """
set -e
hostname {name}
for folder in {folders}; do mount --bind {root}/$folder /$folder; done
exec sleep infinity
"""
# What kubeadm's package installs as kubelet.service.d/10-kubeadm.conf, without systemd.
SYSTEMCTL = """#!/bin/sh
pid=/run/kubelet.pid
case "$*" in
*stop*kubelet* | disable*kubelet*)
    if [ -e "$pid" ]; then kill "$(cat "$pid")" 2>/dev/null || true; rm -f "$pid"; fi ;;
*start*kubelet* | enable*kubelet*)
    "$0" stop kubelet
    if [ -e /etc/default/kubelet ]; then . /etc/default/kubelet; fi
    if [ -e /var/lib/kubelet/kubeadm-flags.env ]; then . /var/lib/kubelet/kubeadm-flags.env; fi
    setsid kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\
        --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \\
        ${KUBELET_KUBEADM_ARGS:-} ${KUBELET_EXTRA_ARGS:-} >>/var/log/kubelet.log 2>&1 </dev/null &
    echo $! >"$pid" ;;
is-active*) [ -e "$pid" ] ;;
esac
"""


@dataclass(frozen=True, slots=True)
class HookResult:
    """How one call of the hook ended."""

    code: int
    output: str


class HostOfATest:
    """One host; made by `a_host`, which also ends it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for own in OWN_FOLDERS:
            (self.root / own).mkdir(parents=True)
        for needed in ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "ssl"):
            source = Path("/etc") / needed
            if source.is_dir():
                shutil.copytree(source, self.root / "etc" / needed, symlinks=True)
            elif source.exists():
                shutil.copy(source, self.root / "etc" / needed)
        self.write("opt/bigfleet/bootstrap", script_text("bootstrap.sh")).chmod(0o755)
        (self.bin / "kubectl").symlink_to(binaries.path_of("kubectl"))
        self.log = folder / "host.log"
        settle_in = SETTLE_IN.format(name=name, root=self.root, folders=" ".join(OWN_FOLDERS))
        unshare = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.processes = [Process(name, [*_which(unshare), "sh", "-c", settle_in], self.log)]

    def write(self, path: str, text: str) -> Path:
        """A file of the host."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def program(self, name: str, text: str) -> None:
        """A stand-in for a program."""
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def give_kubeadm(self) -> None:
        """The real kubeadm and kubelet, and a runtime for the kubelet."""
        for name in ("kubeadm", "kubelet"):
            (self.bin / name).symlink_to(binaries.path_of(name))
        self.program("systemctl", SYSTEMCTL)
        socket = self.root / SOCKET.lstrip("/")
        socket.parent.mkdir(parents=True)
        stub = [sys.executable, str(HERE / "stub_cri.py"), str(socket)]
        self.processes.append(Process("stub-cri", stub, self.log))

    def start(self) -> None:
        """Start it; returns when commands can be run on it."""
        for process in self.processes:
            process.start()
        deadline = time.monotonic() + START_SECONDS
        ready = "test -x /opt/bigfleet/bootstrap && hostname"
        if len(self.processes) > 1:
            ready = f"test -S {SOCKET} && {ready}"
        while self.run(ready).output.strip() != self.name:
            for process in self.processes:
                process.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} did not start: {self.log.read_text()}")
            time.sleep(0.1)

    def run(self, script: str, secret: bytes = b"", limit: float = 120.0) -> HookResult:
        """Run a script on the host."""
        pid = self.processes[0].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        if not children:
            return HookResult(1, "the host does not run yet")
        enter = ["nsenter", "--target", children[0], "--mount", "--uts", "--pid"]
        done = subprocess.run(
            [*_which(enter), "sh", "-c", script], input=secret, check=False, timeout=limit,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        )  # fmt: skip
        return HookResult(done.returncode, done.stdout.decode(errors="replace"))

    def hook(
        self, kind: CommandKind, operation: str, *, blob: str = "", taints: tuple[str, ...] = (),
        cluster: str = "east", grace: int = 1, limit: float = 90.0,
    ) -> HookResult:  # fmt: skip
        """Call the hook through the kit's wrapper, as a channel does."""
        command = command_for(
            HookCall(
                kind, "/opt/bigfleet/bootstrap", "test", f"test/{self.name}", operation, limit,
                cluster=cluster, grace=grace, taints=taints, secret=blob.encode(),
            )
        )  # fmt: skip
        return self.run(command.script, blob.encode(), limit + 30)

    def stop(self) -> None:
        """End it with everything that runs on it."""
        for process in reversed(self.processes):
            process.kill()


def _which(command: list[str]) -> list[str]:
    found = shutil.which(command[0])
    if found is None:
        raise FileNotFoundError(f"{command[0]} of util-linux is needed to make hosts")
    return [found, *command[1:]]


@contextmanager
def a_host(folder: Path, name: str, *, kubeadm: bool) -> Iterator[HostOfATest]:
    """One running host."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("hosts of a test are namespaces of Linux; run this test as root")
    host = HostOfATest(folder, name)
    if kubeadm:
        host.give_kubeadm()
    try:
        host.start()
        yield host
    finally:
        host.stop()


@contextmanager
def joinable_plane(folder: Path) -> Iterator[ControlPlane]:
    """A cluster that nodes join by kubeadm, one at a time: kubelets share their ports."""
    held = [ports.take() for _ in range(2)]
    try:
        with control_plane(folder, "east", real_nodes=True) as plane:
            _let_nodes_join(plane, *(port.number for port in held))
            yield plane
    finally:
        for port in held:
            port.give_back()


def _let_nodes_join(plane: ControlPlane, kubelet_port: int, health_port: int) -> None:
    """What `kubeadm init` leaves in a cluster for those who join, written by the real kubeadm."""
    place = plane.server.removeprefix("https://")
    documents = [
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
            "bootstrapTokens": [{"token": TOKEN}],
            "localAPIEndpoint": {
                "advertiseAddress": "192.0.2.1", "bindPort": int(place.rpartition(":")[2]),
            },
        },
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
            "controlPlaneEndpoint": place, "kubernetesVersion": _version(),
        },
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": ["none"],
            "failSwapOn": False, "failCgroupV1": False, "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False, "readOnlyPort": 0, "port": kubelet_port,
            "healthzPort": health_port, "nodeStatusUpdateFrequency": "1s",
            "volumePluginDir": "/var/lib/kubelet/volumeplugins", "evictionHard": {},
        },
    ]  # fmt: skip
    config = plane.folder / "kubeadm.yaml"
    config.write_text("\n---\n".join(json.dumps(document) for document in documents))
    for phase in (("upload-config", "all"), ("bootstrap-token",)):
        command = [
            str(binaries.path_of("kubeadm")), "init", "phase", *phase,
            f"--config={config}", f"--kubeconfig={plane.kubeconfig}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def _version() -> str:
    return binaries.pinned("node", "k8s.io/kubernetes")


def join_configuration(plane: ControlPlane, ca_key_sha256: str) -> str:
    """The bootstrap data of a kubeadm host. The host is a part of this one, which has neither a
    kernel module nor sysctls of its own, so kubeadm's checks of the machine are left out."""
    return textwrap.dedent(f"""\
        apiVersion: kubeadm.k8s.io/v1beta4
        kind: JoinConfiguration
        discovery:
          bootstrapToken:
            apiServerEndpoint: {plane.server.removeprefix("https://")}
            token: {TOKEN}
            caCertHashes: ["sha256:{ca_key_sha256}"]
        nodeRegistration:
          ignorePreflightErrors: [all]
          kubeletExtraArgs:
            - name: node-labels
              value: example.com/pool=real
        """)
