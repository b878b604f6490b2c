"""Substrates from files: where a run takes place, and how large that place is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bigfleet_lab.profiles.document import FileFields, read_file
from bigfleet_lab.profiles.model import SkippedGate
from bigfleet_lab.profiles.read_slo import read_skips

KIND: Final = "Substrate"
TYPES: Final = ("local-process", "kind", "byo")


@dataclass(frozen=True, slots=True)
class SubstrateSpec:
    """One substrate."""

    name: str
    type: str
    vcpus: int
    memory_gib: float
    pods_per_cluster: int
    kube_clusters: int | None = 0
    """Real control planes; None for all."""
    kube_pods_max: int = 2_400
    clusters_per_host: int | None = None
    storage: str = "etcd"
    bind_pods_per_second: float = 30.0
    usd_per_host_hour: float = 0.0
    passed_on: dict[str, Any] = field(default_factory=dict)
    """What a chart is given."""
    skip: tuple[SkippedGate, ...] = ()
    """Gates that cannot be measured here; a run that skips one is incomplete."""


def read_substrate(path: Path) -> SubstrateSpec:
    """The substrate in a file."""
    top = read_file(path, KIND)
    head = top.mapping("metadata", required=True)
    name = head.text("name")
    head.finish()
    if name != path.stem:
        raise head.error(f"metadata.name is {name!r}: the file's name says {path.stem!r}", "name")
    host, cluster, cost = top.mapping("host", required=True), top.mapping("cluster"), None
    type_ = top.choice("type", "", TYPES)
    cost = top.mapping("costEstimate")
    made = SubstrateSpec(
        name=name,
        type=type_,
        vcpus=host.whole("vCPU", low=1),
        memory_gib=host.number("memoryGiB", low=1),
        pods_per_cluster=cluster.whole("podsPerCluster", 6_000, low=1),
        kube_clusters=_kube_clusters(cluster, type_),
        kube_pods_max=cluster.whole("kubePodsMax", 2_400, low=1),
        clusters_per_host=cluster.optional_whole("clustersPerHost", low=1),
        storage=cluster.choice("storage", "etcd", ("etcd", "kine")),
        bind_pods_per_second=cluster.number("bindThroughputPodsPerSec", 30, low=0.1),
        usd_per_host_hour=cost.number("perHostUsdPerHour", low=0),
        passed_on={
            key: value
            for key in ("kwokPod", "apiserver", "provisioning")
            if (value := top.values(key))
        },
        skip=read_skips(top),
    )
    for fields in (host, cluster, cost, top):
        fields.finish()
    return made


def _kube_clusters(cluster: FileFields, type_: str) -> int | None:
    if type_ != "local-process":
        return None
    return cluster.whole("kubeClusters", 0)
