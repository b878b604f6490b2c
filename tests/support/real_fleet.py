"""A whole fleet of real processes around real control planes, for the e2e tests.

    pods of a real cluster -> pod controller -> operator -> shard -> kwok provider
    -> nodes that kwok makes Ready -> pods that run

Control planes are shared by the tests of a run, because starting one takes seconds; everything of
BigFleet is started again for every test, and what a test left in a cluster is removed before the
next one.
"""

import http
import json
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube import ports
from kube.plane import ControlPlane
from kube.processes import Process

# Costs nothing but where something is wrong; machines that judge changes are busy.
PATIENCE = 180.0
LABEL = re.compile(r'(\w+)="([^"]*)"')
POLL = 0.1
BIN = Path(sys.executable).parent
TEMPLATE = 'kind: KwokJoin\nkubeconfig: "{{ cluster_id }}"\n'
SLOW_MS = 1000
OFFERED = (
    "{instance_type: kwok-4x16, zone: %s, capacity_type: on_demand, count: %d, "
    "allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}"
)
# Minutes become seconds: a test cannot wait for machines to be idle as long as a bill can.
QUICK = (
    "--cycle-interval=2s", "--reclaim-hold=3s", "--on-demand-release-hold=5s",
    "--spot-release-hold=5s", "--reclaim-cap=1", "--reclaim-window=2s", "--quarantine-time=4s",
)  # fmt: skip
QUICK_BEAT = ("--rollup-interval=2s",)


FLEET = "apis/bigfleet.lucy.sh/v1alpha1"
DEVICES = "apis/resource.k8s.io/v1"
PLACES = {
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "pods": "api/v1",
    "capacityrequests": FLEET,
    "leases": "apis/coordination.k8s.io/v1",
    "resourceclaims": DEVICES,
    "resourceclaimtemplates": DEVICES,
    "resourceslices": DEVICES,
    "deviceclasses": DEVICES,
    "nodes": "api/v1",
    "upcomingnodes": FLEET,
    "availablecapacities": FLEET,
}
"""Where each kind is found in the API."""
LEFT_IN_DEFAULT = (
    "deployments", "statefulsets", "jobs", "replicasets", "poddisruptionbudgets", "pods",
    "capacityrequests", "resourceclaims", "resourceclaimtemplates",
)  # fmt: skip
LEFT_IN_THE_CLUSTER = (
    "nodes", "upcomingnodes", "availablecapacities", "resourceslices", "deviceclasses",
)  # fmt: skip


class NotInTimeError(AssertionError):
    """A condition did not come true."""


def eventually(
    condition: Callable[[], object], what: str, seconds: float = PATIENCE, poll: float = POLL
) -> float:
    """Wait for something to be true; how long that took."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise NotInTimeError(f"{what}: not within {seconds:g} s")
        time.sleep(poll)
    return time.monotonic() - begun


def deployment(
    name: str,
    replicas: int,
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    priority_class: str = "",
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Pods that a person keeps alive."""
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "work",
                "image": "work",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }
        ],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(annotations or {})},
                "spec": spec,
            },
        },
    }


def budget(name: str, **limits: int) -> dict[str, Any]:
    """A PodDisruptionBudget: minAvailable=1 or maxUnavailable=0."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **limits},
    }


def priority_class(name: str, value: int) -> dict[str, Any]:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        # Machines shall move between clusters: inside one the scheduler must not help itself.
        "preemptionPolicy": "Never",
    }


@dataclass
class Cluster:
    """One cluster as a test sees it."""

    plane: ControlPlane
    operator: Process
    controller: Process
    metrics: str = ""
    pod_metrics: str = ""
    check: Callable[[], None] = lambda: None
    """Complains when a person of its fleet has died by itself: no caller waits for the dead."""

    @property
    def name(self) -> str:
        """Its id."""
        return self.plane.name

    def get(self, kind: str, *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, in all namespaces."""
        chosen = {"labelSelector": labels, "fieldSelector": fields}
        query = {name: value for name, value in chosen.items() if value}
        items = self.plane.api.get(f"/{PLACES[kind]}/{kind}", **query)["items"]
        assert isinstance(items, list)
        return items

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects."""
        text = "\n---\n".join(json.dumps(one) for one in objects)
        self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def scale(self, name: str, replicas: int) -> None:
        """Another number of pods."""
        path = f"/{PLACES['deployments']}/namespaces/default/deployments/{name}"
        self.plane.api.patch(path, {"spec": {"replicas": replicas}})

    def pods(self, phase: str = "", app: str = "") -> list[dict[str, Any]]:
        """Pods that are not being deleted, in one phase or in any."""
        return [
            pod
            for pod in self.get("pods", labels=f"app={app}" if app else "")
            if not pod["metadata"].get("deletionTimestamp")
            and (not phase or pod["status"].get("phase") == phase)
        ]

    def running(self, app: str = "") -> int:
        """How many pods run."""
        return len(self.pods("Running", app))

    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return [node["metadata"]["name"] for node in self.get("nodes")]

    def until_running(self, count: int, app: str = "", seconds: float = PATIENCE) -> float:
        """Wait until so many pods run; how long that took."""
        what = f"{self.name}: {count} pods of {app or 'all'} run"

        def run() -> bool:
            self.check()
            return self.running(app) == count

        return eventually(run, what, seconds)

    def clean(self) -> None:
        """Remove everything a test may have left."""
        for kind in ("leases", *LEFT_IN_DEFAULT):
            self.plane.api.delete(
                f"/{PLACES[kind]}/namespaces/default/{kind}",
                gracePeriodSeconds=0,
                propagationPolicy="Background",
            )
        for kind in LEFT_IN_THE_CLUSTER:
            self.plane.api.delete(f"/{PLACES[kind]}/{kind}")
        # The process that makes pods has to be gone as well, or there is one more of them later.
        kinds = (*LEFT_IN_DEFAULT, *LEFT_IN_THE_CLUSTER)
        eventually(lambda: not any(self.get(kind) for kind in kinds), f"{self.name} is empty")


@dataclass
class Fleet:
    """Clusters, one shard and one provider."""

    folder: Path
    clusters: list[Cluster]
    shard: Process
    provider: Process
    shard_metrics: str
    sessions: str
    """Where the shard takes operators and `bigfleetctl`."""

    @property
    def processes(self) -> list[Process]:
        """Everything of BigFleet."""
        each = [process for one in self.clusters for process in (one.operator, one.controller)]
        return [self.provider, self.shard, *each]

    def start(self) -> None:
        """Start everything that does not run."""
        for process in self.processes:
            process.start()

    def stop(self) -> None:
        """End everything."""
        for process in reversed(self.processes):
            process.kill()

    def check(self) -> None:
        """Everything that was started runs."""
        for process in self.processes:
            process.check()

    def log(self, process: Process) -> str:
        """What a process said."""
        return process.log.read_text(encoding="utf-8", errors="replace")

    def machines(self, state: str) -> int:
        """Machines in a state, as the shard counts them."""
        found = scraped(self.shard_metrics, "bigfleet_shard_inventory_machines")
        return int(sum(value for labels, value in found if labels["state"] == state))


def scraped(address: str, metric: str) -> list[tuple[dict[str, str], float]]:
    """All series of a metric; none where no process answers."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        if line.startswith((f"{metric}{{", f"{metric} ")):
            labels = dict(LABEL.findall(line))
            found.append((labels, float(line.rsplit(" ", 1)[1])))
    return found


def is_ready(address: str) -> bool:
    """What /readyz says there."""
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=10) as answer:
            return bool(answer.status == http.HTTPStatus.OK)
    except OSError:
        return False


def _command(name: str, *arguments: str) -> list[str]:
    return [str(BIN / name), *arguments]


def _cluster(
    folder: Path,
    plane: ControlPlane,
    sessions: str,
    addresses: tuple[str, str],
    kubeconfigs: tuple[Path, Path],
    operator: Sequence[str],
    controller: Sequence[str],
) -> Cluster:
    """A control plane with the two of our programs that belong to it."""
    metrics, pod_metrics = addresses
    name = plane.name
    operators = _command(
        "bigfleet", "operator", f"--cluster-id={name}", f"--shard-addr={sessions}",
        f"--kubeconfig={kubeconfigs[0]}", f"--bootstrap-template={folder / 'bootstrap.j2'}",
        f"--metrics-addr={metrics}", *operator,
    )  # fmt: skip
    controllers = _command(
        "bigfleet", "pod-controller", f"--kubeconfig={kubeconfigs[1]}",
        f"--metrics-addr={pod_metrics}", *controller,
    )  # fmt: skip
    return Cluster(
        plane,
        Process(f"operator {name}", operators, folder / f"operator-{name}"),
        Process(f"pods {name}", controllers, folder / f"pods-{name}"),
        metrics,
        pod_metrics,
    )


@contextmanager
def a_fleet(
    folder: Path,
    planes: Sequence[ControlPlane],
    *,
    slots: int = 20,
    zones: Sequence[str] = ("kwok-zone-a",),
    shard: Sequence[str] = (),
    provider: Sequence[str] = (),
    operator: Sequence[str] = (),
    controller: Sequence[str] = (),
    kubeconfigs: Mapping[str, tuple[Path, Path]] | None = None,
) -> Iterator[Fleet]:
    """A fleet that runs; its clusters are empty at the start and may be full at the end.

    There are so many slots in each zone. `kubeconfigs` are those of operator and pod controller by
    cluster, where they are not admins.
    """
    with ExitStack() as ends:

        def address() -> str:
            port = ports.take()
            ends.callback(port.give_back)
            return f"127.0.0.1:{port.number}"

        clusters_folder = folder / "clusters"
        clusters_folder.mkdir(parents=True)
        (folder / "bootstrap.j2").write_text(TEMPLATE)
        serving, sessions, shard_metrics = address(), address(), address()
        offered = ", ".join(OFFERED % (zone, slots) for zone in zones)
        clusters = []
        for plane in planes:
            (clusters_folder / f"{plane.name}.yaml").write_text(plane.kubeconfig.read_text())
            own = (kubeconfigs or {}).get(plane.name, (plane.kubeconfig, plane.kubeconfig))
            own_addresses = address(), address()
            clusters.append(
                _cluster(folder, plane, sessions, own_addresses, own, operator, controller)
            )
        shards = _command(
            "bigfleet", "shard", "--shard-id=s-1", f"--listen={sessions}",
            f"--metrics-addr={shard_metrics}", f"--data-dir={folder / 'shard'}",
            f"--provider-addr=kwok={serving}@local", *QUICK, *shard,
        )  # fmt: skip
        providers = _command(
            "bigfleet-provider-kwok", f"--addr={serving}", "--metrics-addr=0",
            f"--state={folder / 'provider.db'}", f"--offerings=[{offered}]",
            f"--cluster-kubeconfigs={clusters_folder}", f"--slow-ms={SLOW_MS}", *provider,
        )  # fmt: skip
        fleet = Fleet(
            folder,
            clusters,
            Process("shard", shards, folder / "shard.log"),
            Process("provider", providers, folder / "provider.log"),
            shard_metrics,
            sessions,
        )
        for cluster in clusters:
            cluster.check = fleet.check
            cluster.clean()
        ends.callback(fleet.stop)
        fleet.start()
        yield fleet
        fleet.check()
