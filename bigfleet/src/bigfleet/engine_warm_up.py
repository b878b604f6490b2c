"""Compile the engine before anybody waits for it.

Kernels are compiled once after an install and then loaded from the cache. This runs one small
cycle that reaches every kernel: a gang, a need that stays unmet, machines bound, idle and not yet
created, and two workers.
"""

from __future__ import annotations

from pathlib import Path

from bigfleet import decision
from bigfleet.decision import Engine, Policy
from bigfleet.inventory import Inventory
from bigfleet.jit.cache import is_compiled
from bigfleet.model import (
    CapacityType,
    HostRef,
    Machine,
    MachineState,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Stamp,
)
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts

_RACK = "topology.bigfleet/rack"
_UNIT = {"cpu": 1000}


def is_warm() -> bool:
    """Whether the engine's compiled code is there, so that no command has to wait for it."""
    return is_compiled(Path(decision.__file__).parent / "kernels")


def warm_up() -> int:
    """Run the cycle; how many actions it decided (the same every time)."""
    plain = Need("warm", Profile.of(priority=1), {"cpu": 4000}, _UNIT)
    same = Requirement.of(_RACK, RequirementOperator.SAME, [])
    gang = Need("warm", Profile.of([same], priority=2), {"cpu": 6000}, _UNIT, group="g")
    unmet = Need("warm", Profile.of(priority=3), {"cpu": 90_000}, {"cpu": 90_000})
    states = (MachineState.CONFIGURED, MachineState.IDLE, MachineState.SPECULATIVE)
    machines = [_machine(i, state, plain) for i, state in enumerate(states * 2)]
    actions = 0
    for workers in (1, 2):
        symbols = Symbols()
        inventory = Inventory(symbols)
        inventory.load(machines)
        demand = Demand.of([plain, gang, unmet], {"warm": ClusterFacts()}, symbols)
        plan = Engine().decide(inventory.snapshot(), demand, Policy(workers=workers), now=1)
        actions += len(plan.actions)
    return actions


def _machine(index: int, state: MachineState, need: Need) -> Machine:
    bound = state is MachineState.CONFIGURED
    return Machine(
        id=f"warm-{index}",
        state=state,
        host=None if state is MachineState.SPECULATIVE else HostRef("warm", str(index)),
        cluster="warm" if bound else "",
        instance_type="small",
        zone="z",
        capacity_type=CapacityType.ON_DEMAND,
        labels={_RACK: "r"},
        resources={"cpu": 2000},
        price_per_hour=0.1,
        stamp=Stamp.for_need(need, 0) if bound else None,
    )
