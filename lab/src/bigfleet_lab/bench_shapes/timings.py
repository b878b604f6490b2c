"""Timing decisions on drawn fleets: one from a given state, or many while a fleet lives on."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bigfleet.decision import Engine, Plan
from bigfleet.decision.carry import Carry
from bigfleet.decision.policy import Policy
from bigfleet.model.columns import Demand, MachineColumns
from bigfleet_lab.bench.benchmark import Churn
from bigfleet_lab.simulate.drawn_fleets import draw_fleet
from bigfleet_lab.simulate.fleet_shapes import FleetShape
from bigfleet_lab.simulate.loop import Delays, Loop

_ENGINES: Final = 2
"""A fresh decision is timed with so many engines, one after the other; the fastest counts, because
the first one also pays for reading the columns for the first time."""
_MOST_CYCLES: Final = 200
_CHANGES: Final = 30


@dataclass(frozen=True, slots=True)
class ShapeTimes:
    """Milliseconds of the decisions on one shape, and what the last one decided."""

    shape: FleetShape
    ms: tuple[float, ...]
    digest: str


@dataclass
class TimedEngine(Engine):
    """An engine that notes how long every decision took."""

    clock: Callable[[], float] = time.perf_counter
    ms: list[float] = field(default_factory=list)

    def decide(
        self,
        fleet: MachineColumns,
        demand: Demand,
        policy: Policy | None = None,
        carry: Carry | None = None,
        now: int = 0,
    ) -> Plan:
        """Decide, and note the milliseconds."""
        begin = self.clock()
        plan = super().decide(fleet, demand, policy, carry, now)
        self.ms.append((self.clock() - begin) * 1e3)
        return plan


def time_fresh(shape: FleetShape) -> ShapeTimes:
    """One decision from the state in which the shape is made, by an engine that knows nothing."""
    world = draw_fleet(shape).world()
    fleet = world.inventory.snapshot()
    times, digests = [], set()
    gc.collect()
    for _ in range(_ENGINES):
        engine = TimedEngine()
        plan = engine.decide(fleet, world.demand, world.policy, world.carry, world.now)
        times.append(engine.ms[0])
        digests.add(plan.digest())
    if len(digests) != 1:
        raise AssertionError(f"{shape.name}: two engines decided differently: {digests}")
    return ShapeTimes(shape, (min(times),), digests.pop())


def time_settled(shape: FleetShape) -> ShapeTimes:
    """Decisions while 3 % of the rows change each cycle and transitions take their time.

    Before, the fleet comes to rest at unchanged demand.
    """
    engine = TimedEngine()
    loop = Loop(draw_fleet(shape).world(), Delays(), shape.seed, engine)
    for _ in range(_MOST_CYCLES):
        loop.step()
        if loop.settled_at is not None:
            break
    churn = Churn(loop.world.demand, shape.seed)
    engine.ms.clear()
    gc.collect()
    digest = ""
    for _ in range(_CHANGES):
        loop.change_demand(churn.next(loop.world.demand, loop.world.now))
        digest = loop.step().digest()
    return ShapeTimes(shape, tuple(engine.ms), digest)


def worst_of(found: Iterable[ShapeTimes]) -> ShapeTimes:
    """The shape with the slowest decision."""
    return max(found, key=lambda times: max(times.ms))


def percentile(found: Iterable[ShapeTimes], q: float) -> float:
    """Over all decisions of all shapes."""
    return float(np.percentile(np.concatenate([times.ms for times in found]), q))
