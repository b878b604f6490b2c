"""The modelled fleet of the benchmarks: instance types, racks, pools, zones, prices.

Racks of 50 machines of one type, pool and way of paying; twelve types in three zones and three
pools. Everything that is drawn is drawn from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from bigfleet.model import CapacityType, Resources
from bigfleet.scenario.document import MOST_INDEX
from bigfleet.scenario.errors import WorkloadError

RACK_SIZE: Final = 50
ZONES: Final = ("z-a", "z-b", "z-c")
POOLS: Final = ("p0", "p1", "p2")
LEAST_MACHINES: Final = RACK_SIZE * len(ZONES)

_GIB: Final = 1024**3 * 1000


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What a machine of a type gives, in milli-units, and costs on demand."""

    name: str
    allocatable: Resources
    price: float


def _type(name: str, cpu: int, memory_gib: int, price: float, gpu: int = 0) -> InstanceType:
    # A node keeps some of a machine for itself, so what is left is not a round number.
    given = {"cpu": cpu * 1000 - 110, "memory": (memory_gib - memory_gib // 16) * _GIB}
    if gpu:
        given["nvidia.com/gpu"] = gpu * 1000
    return InstanceType(name, given, price)


TYPES: Final = (
    _type("gp.xlarge", 4, 16, 0.19),
    _type("gp.2xlarge", 8, 32, 0.38),
    _type("gp.4xlarge", 16, 64, 0.77),
    _type("gp.8xlarge", 32, 128, 1.54),
    _type("cpu.2xlarge", 8, 16, 0.34),
    _type("cpu.4xlarge", 16, 32, 0.68),
    _type("cpu.8xlarge", 32, 64, 1.36),
    _type("mem.xlarge", 4, 32, 0.25),
    _type("mem.2xlarge", 8, 64, 0.50),
    _type("mem.4xlarge", 16, 128, 1.01),
    _type("gpu.4xlarge", 16, 64, 2.80, gpu=2),
    _type("gpu.8xlarge", 32, 128, 5.60, gpu=4),
)

_PAID: Final = (
    (CapacityType.BARE_METAL, 2),
    (CapacityType.RESERVED, 2),
    (CapacityType.ON_DEMAND, 4),
    (CapacityType.SPOT, 2),
)


@dataclass(frozen=True, slots=True)
class Rack:
    """One rack: `count` machines from index `start` on."""

    number: int
    count: int
    type: InstanceType
    pool: str
    capacity_type: CapacityType
    price: float
    interruption_probability: float

    @property
    def start(self) -> int:
        """The index of its first machine."""
        return self.number * RACK_SIZE

    @property
    def zone(self) -> str:
        """The zone the format gives it."""
        return ZONES[self.number % len(ZONES)]

    @property
    def elastic(self) -> bool:
        """Whether its machines may be given back."""
        return self.capacity_type in (CapacityType.ON_DEMAND, CapacityType.SPOT)


def racks(machines: int, rng: Random) -> list[Rack]:
    """The racks of a fleet of so many machines."""
    if not LEAST_MACHINES <= machines <= MOST_INDEX:
        raise WorkloadError(
            f"a workload of {machines} machines cannot be made: ask for {LEAST_MACHINES} "
            f"to {MOST_INDEX}"
        )
    kinds, weights = [kind for kind, _ in _PAID], [weight for _, weight in _PAID]
    made = []
    for number in range(-(-machines // RACK_SIZE)):
        # Three racks in a row, one in each zone, are of one type.
        kind = TYPES[number // len(ZONES) % len(TYPES)]
        capacity_type = rng.choices(kinds, weights)[0]
        spot = capacity_type is CapacityType.SPOT
        elastic = spot or capacity_type is CapacityType.ON_DEMAND
        made.append(
            Rack(
                number=number,
                count=min(RACK_SIZE, machines - number * RACK_SIZE),
                type=kind,
                pool=rng.choice(POOLS),
                capacity_type=capacity_type,
                price=round(kind.price * (0.35 if spot else 1.0), 4) if elastic else 0.0,
                interruption_probability=rng.choice((0.05, 0.1, 0.2)) if spot else 0.0,
            )
        )
    return made
