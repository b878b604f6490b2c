"""How much the inventory of a large fleet takes, for benchmarks and tests to hold against the bar.

The fleet is like the scenarios of the engine's benchmark: racks of 50, a few instance types, and
a host behind every machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from bigfleet.inventory.inventory import Inventory
from bigfleet.model.columns import Symbols
from bigfleet.model.machine import CapacityType, HostRef, Machine, MachineState

_RACK = 50
_ZONES = 3
_TYPES = 12
_CLUSTERS = 200


def measure_memory(machines: int = 500_000) -> dict[str, float]:
    """What `Inventory.memory` says of a fleet of this size."""
    inventory = Inventory(Symbols())
    inventory.load(typical_machines(machines))
    return inventory.memory()


def typical_machines(count: int) -> Iterator[Machine]:
    """So many bound machines."""
    shapes = [{"cpu": 1000 << i, "memory": 4_000 << (30 + i)} for i in range(_TYPES)]
    labels: dict[str, str] = {}
    for i in range(count):
        rack, kind = i // _RACK, i // _RACK % _TYPES
        if i % _RACK == 0:
            labels = {"topology.bigfleet/rack": f"r-{rack:05}", "pool": f"p{kind % 4}"}
        yield Machine(
            id=f"m-{i:07}",
            state=MachineState.CONFIGURED,
            host=HostRef("typical", f"i-{i:017x}"),
            provider="typical",
            region="eu",
            cluster=f"c-{i % _CLUSTERS:03}",
            instance_type=f"gp.{kind}xlarge",
            zone=f"z-{rack % _ZONES}",
            capacity_type=CapacityType.ON_DEMAND,
            labels=labels,
            resources=shapes[kind],
            price_per_hour=0.06 * (1 << kind),
            pods=i % 30,
        )
