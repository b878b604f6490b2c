"""Starts and stops Kubernetes control planes on loopback, for tests and demos.

A control plane is etcd, kube-apiserver, kube-scheduler, kube-controller-manager with the
controllers that tests need, and kwok, which makes every node Ready and every bound Pod run. It
takes about five seconds, listens on 127.0.0.1 alone, keeps everything in one folder, and is gone
when its process is.

    with control_plane(folder) as plane:
        plane.install(Path("api/crd"))
        plane.kubectl("get", "fleet", "-A")

    python -m kube.plane --folder DIR [--name east --name west]     # until Ctrl-C
"""

import argparse
import base64
import http.client
import json
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kube import binaries, ports
from kube.api import Api, ApiError
from kube.certificates import Authority, Identity, signing_key
from kube.processes import Process

STAGES: Final = Path(__file__).parent / "stages.yaml"
START_SECONDS: Final = 90.0
CONTROLLERS: Final = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resource-claim-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
)
COMPONENTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
# What a control plane has to do for nodes that really join: sign the cluster's address for those
# who have a token, and the certificates of their kubelets.
JOINING: Final = (
    "bootstrap-signer-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
)


class ControlPlaneError(Exception):
    """A control plane does not do what it should."""


class ControlPlane:
    """One Kubernetes. Made by `control_plane`, which also ends it.

    With `real_nodes` its nodes are those that join by kubeadm: kwok is left out, and a node may
    change nothing but what is its own (NodeRestriction).
    """

    def __init__(self, folder: Path, name: str = "kube", *, real_nodes: bool = False) -> None:
        self.name = name
        self.folder = folder
        self.logs = folder / "logs"
        self.kubeconfig = folder / "kubeconfig"
        self._ports = [ports.take() for _ in range(3)]
        etcd_port, peer_port, api_port = (port.number for port in self._ports)
        self.server = f"https://127.0.0.1:{api_port}"
        self.etcd = f"http://127.0.0.1:{etcd_port}"
        self.authority = Authority(f"{name} authority")
        self.processes = {
            component: Process(component, command, self.logs / f"{component}.log")
            for component, command in _commands(folder, etcd_port, peer_port, api_port).items()
        }
        if real_nodes:
            del self.processes["kwok"]
            _let_nodes_join(self.processes, folder)
        self._cache = folder / "kubectl"
        self.api = Api(self.server, self._trust)

    def start(self) -> None:
        """Start everything; returns when Pods can be created and will run."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self._write_files()
        for component in ("etcd", "kube-apiserver"):
            self.processes[component].start()
        self.wait(self._api_is_ready, "the API server is not ready")
        for component in COMPONENTS[2:]:
            if component in self.processes:
                self.processes[component].start()
        # Admission refuses Pods until their namespace has a service account.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait(lambda: self._answers(account), "there is no default service account")

    def stop(self) -> None:
        """Kill everything; the folder with the logs stays."""
        self.api.close()
        for process in reversed(self.processes.values()):
            process.kill()
        for port in self._ports:
            port.give_back()

    def restart_api_server(self) -> None:
        """Start the API server again after `processes["kube-apiserver"].kill()`."""
        self.processes["kube-apiserver"].start()
        self.wait(self._api_is_ready, "the API server is not ready")
        # It says so before it finds its custom resources again.
        self.wait(lambda: not self._unserved(), "custom resources are not served")

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """Run kubectl and return what it prints; with check=False its complaints are included."""
        command = [
            str(binaries.path_of("kubectl")), f"--kubeconfig={self.kubeconfig}",
            # The usual one is kept by address, for hours: an API server that had the same port
            # before would answer for this one.
            f"--cache-dir={self._cache}",
        ]  # fmt: skip
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if not check:
            return done.stdout + done.stderr
        if done.returncode != 0:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def install(self, *paths: Path) -> None:
        """Apply manifests and wait until the CRDs among them are served."""
        files = [argument for path in paths for argument in ("-f", str(path))]
        self.kubectl("apply", "--server-side", "--force-conflicts", *files)
        self.wait(lambda: not self._unserved(), "custom resources are not served")
        # What kubectl read before does not know them, and it believes itself for hours.
        shutil.rmtree(self._cache, ignore_errors=True)

    def _unserved(self) -> set[str]:
        """Custom resources that the API server does not list yet: it does so after it took them."""
        definitions = self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        missing = set()
        for spec in (item["spec"] for item in definitions["items"]):
            plural = spec["names"]["plural"]
            for version in (one["name"] for one in spec["versions"] if one["served"]):
                place = f"/apis/{spec['group']}/{version}"
                try:
                    served = [one["name"] for one in self.api.get(place)["resources"]]
                    self.api.get(f"{place}/{plural}", limit="1")
                except ApiError:
                    served = []
                if plural not in served:
                    missing.add(f"{plural}.{version}.{spec['group']}")
        return missing

    def user(self, name: str, group: str | None = None) -> Path:
        """A kubeconfig of another user, who has no rights but those that RBAC gives."""
        path = self.folder / f"kubeconfig-{name.replace('/', '_').replace(':', '_')}"
        self._write_kubeconfig(path, self.authority.user(name, group))
        return path

    def wait(self, condition: Callable[[], bool], problem: str) -> None:
        """Until a condition holds; at once an error when a process has died."""
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            for process in self.processes.values():
                process.check()
            if time.monotonic() > deadline:
                tail = self.processes["kube-apiserver"].tail()
                raise ControlPlaneError(
                    f"{self.name}: {problem} after {START_SECONDS:g} s; logs are in {self.logs}; "
                    f"the API server's says:\n{tail}"
                )
            time.sleep(0.05)

    def _api_is_ready(self) -> bool:
        return self._answers("/readyz")

    def _answers(self, path: str) -> bool:
        try:
            self.api.call("GET", path)
        except json.JSONDecodeError:
            return True  # /readyz says a plain word
        except (ApiError, OSError, http.client.HTTPException):
            return False
        return True

    def _trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        return context

    def _write_files(self) -> None:
        admin = self.authority.user("admin", "system:masters")
        authority = self.authority
        named = (("server", authority.server()), ("admin", admin), ("ca", authority.signer()))
        for name, identity in named:
            (self.folder / f"{name}.crt").write_bytes(identity.certificate)
            key = self.folder / f"{name}.key"
            key.touch(mode=0o600)
            key.write_bytes(identity.key)
        signing_key(self.folder / "accounts.key", self.folder / "accounts.pub")
        self._write_kubeconfig(self.kubeconfig, admin)
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 500, "burst": 1000},
            "leaderElection": {"leaderElect": False},
            # Ten by default: an older Pod sits that out while newer ones take the node it waits
            # for, over and over.
            "podMaxBackoffSeconds": 1,
        }
        (self.folder / "scheduler.yaml").write_text(json.dumps(scheduler), encoding="utf-8")

    def _write_kubeconfig(self, path: Path, identity: Identity) -> None:
        def text(data: bytes) -> str:
            return base64.b64encode(data).decode()

        cluster = {
            "server": self.server,
            "certificate-authority-data": text(self.authority.certificate),
        }
        user = {
            "client-certificate-data": text(identity.certificate),
            "client-key-data": text(identity.key),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def _commands(
    folder: Path, etcd_port: int, peer_port: int, api_port: int
) -> dict[str, Sequence[str]]:
    """How each program is started. JSON is YAML, so files are written as JSON."""

    def program(name: str, **options: object) -> list[str]:
        flags = [f"--{option.replace('_', '-')}={value}" for option, value in options.items()]
        return [str(binaries.path_of(name)), *flags]

    etcd = f"http://127.0.0.1:{etcd_port}"
    peer = f"http://127.0.0.1:{peer_port}"
    kubeconfig = folder / "kubeconfig"
    return {
        "etcd": program(
            "etcd",
            data_dir=folder / "etcd",
            listen_client_urls=etcd,
            advertise_client_urls=etcd,
            listen_peer_urls=peer,
            initial_advertise_peer_urls=peer,
            initial_cluster=f"default={peer}",
            # Tests lose nothing by losing a control plane.
            unsafe_no_fsync="true",
            quota_backend_bytes=4 * 2**30,
            log_level="warn",
        ),
        "kube-apiserver": program(
            "kube-apiserver",
            etcd_servers=etcd,
            bind_address="127.0.0.1",
            secure_port=api_port,
            endpoint_reconciler_type="none",
            service_cluster_ip_range="10.96.0.0/16",
            tls_cert_file=folder / "server.crt",
            tls_private_key_file=folder / "server.key",
            client_ca_file=folder / "ca.crt",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=folder / "accounts.pub",
            service_account_signing_key_file=folder / "accounts.key",
            authorization_mode="RBAC",
            enable_bootstrap_token_auth="true",
            allow_privileged="true",
            profiling="false",
            # Demands of whole fleets come from one user here.
            max_requests_inflight=1000,
            max_mutating_requests_inflight=500,
        ),
        "kube-controller-manager": program(
            "kube-controller-manager",
            kubeconfig=kubeconfig,
            controllers=",".join(CONTROLLERS),
            leader_elect="false",
            secure_port=0,
            service_account_private_key_file=folder / "accounts.key",
            root_ca_file=folder / "ca.crt",
            kube_api_qps=500,
            kube_api_burst=1000,
            concurrent_gc_syncs=20,
        ),
        "kube-scheduler": program(
            "kube-scheduler", config=folder / "scheduler.yaml", secure_port=0
        ),
        "kwok": program(
            "kwok",
            kubeconfig=kubeconfig,
            config=STAGES,
            manage_all_nodes="true",
            node_lease_duration_seconds=40,
        ),
    }


def _let_nodes_join(processes: dict[str, Process], folder: Path) -> None:
    processes["kube-apiserver"].command += [
        "--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction",
    ]  # fmt: skip
    processes["kube-controller-manager"].command += [
        f"--controllers={','.join(JOINING)}",
        f"--cluster-signing-cert-file={folder / 'ca.crt'}",
        f"--cluster-signing-key-file={folder / 'ca.key'}",
    ]


@contextmanager
def control_plane(
    folder: Path | None = None, name: str = "kube", *, real_nodes: bool = False
) -> Iterator[ControlPlane]:
    """One running control plane, in a folder of the caller or one that goes with it."""
    with control_planes([name], folder, real_nodes=real_nodes) as planes:
        yield planes[0]


@contextmanager
def control_planes(
    names: Sequence[str], folder: Path | None = None, *, real_nodes: bool = False
) -> Iterator[list[ControlPlane]]:
    """Several running control planes, each in a folder of its name, started at the same time."""
    with ExitStack() as ends:
        if folder is None:
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="bigfleet-kube-")))
        planes = []
        for name in names:
            (folder / name).mkdir(parents=True, exist_ok=True)
            planes.append(ControlPlane(folder / name, name, real_nodes=real_nodes))
            ends.callback(planes[-1].stop)
        with ThreadPoolExecutor(len(planes)) as starters:
            list(starters.map(ControlPlane.start, planes))
        yield planes


def main(argv: Sequence[str]) -> int:
    """Run control planes until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m kube.plane", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--name", action="append", help="one control plane per name")
    parser.add_argument("--install", type=Path, action="append", default=[], help="manifests")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        with control_planes(options.name or ["kube"], options.folder.resolve()) as planes:
            for plane in planes:
                if options.install:
                    plane.install(*options.install)
                print(f"{plane.name}: {plane.server}  KUBECONFIG={plane.kubeconfig}")
            print(f"ready after {time.monotonic() - started:.1f} s; Ctrl-C ends it", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    except (binaries.KubeToolsError, ControlPlaneError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
