"""A whole system of real processes for another process to watch: three coordinators on
one etcd, two shards, a provider, and a cluster with operator and pod controller.

Nothing is simulated but the machines and the API server's objects. What is asked of it, and what
shall be seen, is left to the tests.
"""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kube_http import KubeHttp

import etcd_members
from kube import ports
from kube.processes import Process
from kubeobjects import pod

PATIENCE = 120.0
POLL = 0.2
BIN = Path(sys.executable).parent
CLUSTER = "c-1"
DOMAINS = tuple(f"topology.kubernetes.io/zone=fake-zone-{letter}" for letter in "ab")
"""All zones of the provider: a shard that was given one domain has no machines of others."""
QUICK = ("--cycle-interval=2s", "--reclaim-hold=3s", "--on-demand-release-hold=5s")


@dataclass(frozen=True, slots=True)
class Target:
    """A page of metrics, and what a scrape adds to its series."""

    address: str
    job: str
    labels: Mapping[str, str]


@dataclass
class System:
    """What runs."""

    folder: Path
    api: KubeHttp
    processes: list[Process] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    coordinators: list[str] = field(default_factory=list)

    def start(self, name: str, *command: str) -> None:
        """One more process."""
        words = [str(BIN / command[0]), *command[1:]]
        process = Process(name, words, self.folder / f"{name}.log")
        self.processes.append(process)
        process.start()

    def watch(self, job: str, address: str, **labels: str) -> str:
        """Its page is looked at as well; the flag that says where it is."""
        self.targets.append(Target(address, f"bigfleet-{job}", labels))
        return f"--metrics-addr={address}"

    def check(self) -> None:
        """Everything that was started runs."""
        for process in self.processes:
            process.check()

    def kill(self) -> None:
        """End everything at once, the last one first."""
        for process in reversed(self.processes):
            process.kill()

    def is_up(self, target: Target) -> bool:
        """Whether a page says that its process is ready; all others have to run."""
        self.check()
        return answers(target.address)

    def ask(self, name: str, cpu: str = "500m") -> None:
        """A pod that finds no node."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/0 nodes are available",
        }
        document = pod(name, cpu=cpu, uid=f"uid-{name}")
        document["status"]["conditions"] = [condition]
        self.api.put(document)

    def control(self, *words: str) -> str:
        """What bigfleetctl says."""
        command = [str(BIN / "bigfleetctl"), "--coordinator", self.coordinators[0], *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr


def eventually(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(POLL)


def answers(address: str, path: str = "/readyz") -> bool:
    """Whether a page says 200."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def a_system(
    folder: Path, *, replicas: int = 3, shards: int = 2, more: Sequence[str] = ()
) -> Iterator[System]:
    """A system that is up. `more` are flags that every process of ours gets."""
    with ExitStack() as ends:

        def address() -> str:
            port = ports.take()
            ends.callback(port.give_back)
            return f"127.0.0.1:{port.number}"

        system = System(folder, ends.enter_context(KubeHttp()))
        ends.callback(system.kill)
        if replicas:
            store = ends.enter_context(etcd_members.running(1)).address("whole")
            for n in range(replicas):
                at = address()
                system.coordinators.append(at)
                page = system.watch("coordinator", address(), pod=f"coordinator-{n}")
                system.start(
                    f"coordinator-{n}", "bigfleet", "coordinator", f"--id=k-{n}", f"--listen={at}",
                    f"--store={store}", f"--snapshot-export-dir={folder / f'export-{n}'}", page,
                )  # fmt: skip
        serving = address()
        page = system.watch("provider", address(), pod="provider-0")
        system.start(
            "provider", "bigfleet-provider-fake", f"--addr={serving}", page,
            f"--state={folder / 'provider.db'}", "--seed-count=12", "--slow-ms=300", *more,
        )  # fmt: skip
        sessions = [address() for _ in range(shards)]
        for n, at in enumerate(sessions):
            page = system.watch("shard", address(), pod=f"shard-{n}")
            dials = [f"--coordinator-addr={one}" for one in system.coordinators]
            provider = [f"--provider-addr=fake={serving}@local"] if n == 0 else []
            system.start(
                f"shard-{n}", "bigfleet", "shard", f"--shard-id=s-{n}", f"--listen={at}", page,
                f"--data-dir={folder / f'shard-{n}'}", *provider, *dials, *QUICK, *more,
            )  # fmt: skip
        kubeconfig = f"--kubeconfig={system.api.kubeconfig(folder)}"
        page = system.watch("operator", address(), cluster=CLUSTER)
        system.start(
            "operator", "bigfleet", "operator", f"--cluster-id={CLUSTER}", kubeconfig, page,
            f"--shard-addr={sessions[0]}", "--allow-stub-bootstrap", "--rollup-interval=2s", *more,
        )  # fmt: skip
        page = system.watch("pod-controller", address(), cluster=CLUSTER)
        system.start("pods", "bigfleet", "pod-controller", kubeconfig, page)
        for target in system.targets:
            eventually(partial(system.is_up, target), f"{target} is up")
        yield system
        system.check()
