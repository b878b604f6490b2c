"""Kinds of workloads and shapes of machines, as fixed test data.

Sizes are those of real instance types; a machine offers 98 % of its CPUs and 93 % of its memory.
Prices are dollars per hour, fixed so that runs can be compared. An archetype says how often its
objects occur, what a pod of it asks for, and how its pods want to lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ZONES: Final = ("zone-a", "zone-b", "zone-c")
RACK: Final = "scaletest.bigfleet/rack"
GPU: Final = "nvidia.com/gpu"
CPU_RACK: Final = 40
GPU_RACK: Final = 16
"""Machines in a rack."""
ON_DEMAND_PROBABILITY: Final = 0.0001
MOST_PODS: Final = 110


@dataclass(frozen=True, slots=True)
class MachineType:
    """One instance type."""

    vcpus: int
    gibibytes: int
    gpus: int
    on_demand: float
    reserved: float
    spot: float
    spot_probability: float

    @property
    def allocatable(self) -> dict[str, float]:
        """What pods may use: CPUs, GiB and GPUs."""
        return {"cpu": self.vcpus * 0.98, "memory": self.gibibytes * 0.93, "gpu": float(self.gpus)}


SHAPES: Final[Mapping[str, MachineType]] = {
    "m6i.large": MachineType(2, 8, 0, 0.096, 0.060, 0.034, 0.012),
    "m6i.xlarge": MachineType(4, 16, 0, 0.192, 0.119, 0.067, 0.012),
    "m6i.2xlarge": MachineType(8, 32, 0, 0.384, 0.238, 0.134, 0.012),
    "m6i.4xlarge": MachineType(16, 64, 0, 0.768, 0.476, 0.269, 0.012),
    "m6i.8xlarge": MachineType(32, 128, 0, 1.536, 0.952, 0.538, 0.012),
    "m6i.16xlarge": MachineType(64, 256, 0, 3.072, 1.905, 1.075, 0.012),
    "c6i.4xlarge": MachineType(16, 32, 0, 0.680, 0.422, 0.258, 0.012),
    "c6i.8xlarge": MachineType(32, 64, 0, 1.360, 0.843, 0.517, 0.012),
    "n2-standard-32": MachineType(32, 128, 0, 1.554, 0.963, 0.388, 0.020),
    "r6i.xlarge": MachineType(4, 32, 0, 0.252, 0.156, 0.088, 0.010),
    "r6i.2xlarge": MachineType(8, 64, 0, 0.504, 0.312, 0.176, 0.010),
    "r6i.4xlarge": MachineType(16, 128, 0, 1.008, 0.625, 0.353, 0.010),
    "r6i.8xlarge": MachineType(32, 256, 0, 2.016, 1.250, 0.706, 0.010),
    "a2-highgpu-8g": MachineType(96, 680, 8, 29.390, 18.222, 11.750, 0.080),
    "a3-highgpu-8g": MachineType(208, 1872, 8, 88.250, 54.715, 35.300, 0.120),
}


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a share of the pods asks for: CPUs, GiB, GPUs."""

    cpus: float
    gibibytes: float
    gpus: int = 0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class PodSpread:
    """A share of the objects spreads over zones, within this skew; hard or as a wish."""

    share: float
    max_skew: int
    hard: bool


@dataclass(frozen=True, slots=True)
class Archetype:
    """A kind of workload."""

    name: str
    weight: int
    requests: tuple[PodRequest, ...]
    priority: int
    interruption_dollars: float
    reclamation_dollars: float
    types: tuple[str, ...]
    gang: tuple[int, int] | None = None
    """Least and most members."""
    gang_key: str = RACK
    atomic: bool = False
    spread: PodSpread | None = None
    stateful: bool = False

    @property
    def mean_replicas(self) -> float:
        """Of its objects: of gangs the middle of their range, else the law of sizes."""
        return sum(self.gang) / 2 if self.gang else 21.375

    @property
    def mean_request(self) -> dict[str, float]:
        """What a pod asks for on average."""
        total = sum(each.share for each in self.requests)
        return {
            "cpu": sum(each.cpus * each.share for each in self.requests) / total,
            "memory": sum(each.gibibytes * each.share for each in self.requests) / total,
            "gpu": sum(each.gpus * each.share for each in self.requests) / total,
        }

    @property
    def pods_per_machine(self) -> int:
        """Pods that fit on a machine of its first type."""
        offered, request = SHAPES[self.types[0]].allocatable, self.mean_request
        fitting = min(offered[name] / amount for name, amount in request.items() if amount)
        return max(1, min(MOST_PODS, int(fitting)))

    @property
    def priority_class(self) -> str:
        """The class that metrics count it under."""
        for name, least in (("critical", 1_000_000), ("service", 1_000), ("batch", 100)):
            if self.priority >= least:
                return name
        return "other"


def _mebi(amount: float) -> float:
    return amount / 1024


_A2: Final = ("a2-highgpu-8g",)
_A3: Final = ("a3-highgpu-8g",)
_M6I: Final = ("m6i.8xlarge", "m6i.4xlarge")
_SERVICE: Final = ("m6i.8xlarge", "n2-standard-32", "m6i.16xlarge")
_C6I: Final = ("c6i.8xlarge", "m6i.8xlarge")

_REALISTIC: Final = (
    Archetype(
        "tiny-stateless",
        16073,
        (PodRequest(0.4, _mebi(500), share=60), PodRequest(0.3, _mebi(384), share=40)),
        100,
        32,
        64,
        _M6I,
        spread=PodSpread(0.45, 2, hard=False),
    ),
    Archetype(
        "cpu-service",
        2755,
        (PodRequest(2.2, _mebi(8500), share=70), PodRequest(4.2, _mebi(16500), share=30)),
        1000,
        1024,
        8192,
        _SERVICE,
        spread=PodSpread(0.75, 1, hard=True),
    ),
    Archetype(
        "cpu-batch",
        1378,
        (PodRequest(4, 8, share=60), PodRequest(8, 16, share=40)),
        100,
        64,
        256,
        _C6I,
        spread=PodSpread(0.15, 2, hard=False),
    ),
    Archetype(
        "critical-realtime",
        230,
        (PodRequest(4, 8),),
        1_000_000,
        65536,
        65536,
        _C6I,
        spread=PodSpread(1.0, 1, hard=True),
    ),
    Archetype(
        "memory-cache",
        2000,
        (PodRequest(2, 16),),
        1000,
        4096,
        16384,
        ("r6i.4xlarge", "r6i.8xlarge"),
        gang=(3, 5),
        stateful=True,
    ),
    Archetype(
        "stateful-db",
        2000,
        (PodRequest(8, 32),),
        1000,
        8192,
        32768,
        ("m6i.16xlarge", "r6i.8xlarge"),
        gang=(3, 5),
        stateful=True,
    ),
    Archetype(
        "gpu-inference",
        100,
        (PodRequest(8, 32, 1),),
        1000,
        4096,
        8192,
        _A2,
        spread=PodSpread(0.5, 2, hard=False),
    ),
    Archetype(
        "gpu-training-small",
        32,
        (PodRequest(64, 256, 8),),
        1000,
        16384,
        32768,
        _A2,
        gang=(2, 8),
        atomic=True,
    ),
    Archetype(
        "gpu-training-medium",
        18,
        (PodRequest(64, 256, 8),),
        1000,
        32768,
        65536,
        _A2,
        gang=(8, 16),
        atomic=True,
    ),
    Archetype(
        "gpu-training-large",
        0,
        (PodRequest(128, 512, 8),),
        1000,
        65536,
        131072,
        _A3,
        gang=(64, 256),
        gang_key="topology.kubernetes.io/zone",
        atomic=True,
    ),
)
_DEV_WEIGHTS: Final = {
    "tiny-stateless": 40, "cpu-service": 15, "cpu-batch": 10, "memory-cache": 8, "stateful-db": 8,
    "gpu-inference": 5, "gpu-training-small": 8, "gpu-training-medium": 6, "critical-realtime": 3,
}  # fmt: skip
_DEV_GANGS: Final = {"gpu-training-small": (2, 4), "gpu-training-medium": (4, 8)}


def _dev() -> tuple[Archetype, ...]:
    made = []
    for each in _REALISTIC:
        if each.name not in _DEV_WEIGHTS:
            continue
        key = "topology.kubernetes.io/zone" if each.name == "gpu-training-medium" else each.gang_key
        made.append(
            Archetype(
                each.name, _DEV_WEIGHTS[each.name], each.requests, each.priority,
                each.interruption_dollars, each.reclamation_dollars, each.types,
                gang=_DEV_GANGS.get(each.name, each.gang), gang_key=key, atomic=each.atomic,
                spread=each.spread, stateful=each.stateful,
            )
        )  # fmt: skip
    return tuple(made)


_COST_ROUTING: Final = tuple(
    Archetype(name, 100, (PodRequest(4, 8),), 100, dollars, 0, ("c6i.8xlarge",))
    for name, dollars in (("tolerant", 0.0), ("sensitive", 8.0))
)
CATALOGUES: Final[Mapping[str, tuple[Archetype, ...]]] = {
    "realistic": _REALISTIC,
    "realistic-dev": _dev(),
    "cost-routing": _COST_ROUTING,
}


def archetype(catalogue: str, name: str) -> Archetype:
    """One of a catalogue."""
    return next(each for each in CATALOGUES[catalogue] if each.name == name)
