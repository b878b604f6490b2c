"""Cycles timed: what a cycle costs, and whether it decided what it must.

A cycle is timed from the first change to the columns until everything it decided is in them:
changes of the demand, snapshot, normalise, three phases, and the plan carried out. A steady
scenario goes on from there with 3 % of its rows changed; any other is put back, untimed, and
repeats the same cycle.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Engine, Plan
from bigfleet.decision.policy import TICK
from bigfleet.model.columns import Demand
from bigfleet.scenario.outcome import unmet_needs
from bigfleet.scenario.state import ScenarioState
from bigfleet_lab.simulate.plan_execution import carry_out, put_back
from bigfleet_lab.simulate.workloads import ExpectedResult

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

PHASES: Final = ("normalise", "phase1", "phase2", "phase3")
CHURN: Final = 0.03
"""The share of rows that change from one steady cycle to the next."""
WARM_UP: Final = 3
_MILLI: Final = 1000
_PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


@dataclass
class Times:
    """Seconds a thing took, once per cycle."""

    seconds: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """p50, p95, p99 and maximum, in milliseconds."""
        values = np.array(self.seconds) * 1e3
        return {name: round(float(np.percentile(values, q)), 4) for name, q in _PERCENTILES.items()}

    @property
    def mean_ms(self) -> float:
        """The mean, in milliseconds."""
        return round(float(np.mean(self.seconds)) * 1e3, 4)

    @property
    def stddev_ms(self) -> float:
        """The standard deviation, in milliseconds."""
        return round(float(np.std(self.seconds)) * 1e3, 4)


@dataclass
class Measurement:
    """What a benchmark found out. Counts and digest are those of the last cycle."""

    whole: Times
    phases: Mapping[str, Times]
    actions: Mapping[str, int]
    unmet: int
    digest: str
    peak_memory_bytes: int
    bytes_per_machine: float
    complaints: list[str]

    def to_json(self) -> dict[str, object]:
        """The shape of the specification; times in milliseconds."""
        return {
            "whole": self.whole.summary(),
            "phases": {name: times.summary() for name, times in self.phases.items()},
            "actions": dict(self.actions),
            "unmet": self.unmet,
            "digest": self.digest,
            "peak_memory_bytes": self.peak_memory_bytes,
            "bytes_per_machine": round(self.bytes_per_machine, 2),
        }


def is_steady(name: str) -> bool:
    """Whether a scenario of this name keeps changing: those are called steady."""
    return name.lower().startswith("steady")


def measure(
    world: ScenarioState,
    cycles: int,
    *,
    steady: bool,
    clock: Callable[[], float],
    seed: int = 1,
    expected: ExpectedResult | None = None,
    on_cycle: Callable[[], None] = lambda: None,
) -> Measurement:
    """Time so many cycles. What a workload expects is checked in every one of them."""
    engine = Engine(clock=clock)
    runner = _Steady(world, engine, seed) if steady else _Repeated(world, engine)
    whole, phases = Times(), {name: Times() for name in PHASES}
    complaints: list[str] = []
    _keep_garbage_out()
    plan = None
    for cycle in range(-WARM_UP, cycles):
        begin = clock()
        plan = runner.cycle()
        took = clock() - begin
        runner.afterwards(plan)
        if expected is not None and not complaints:
            found = expected.complaints(plan.counts(), unmet_needs(plan))
            complaints += [f"cycle {cycle + 1}: {complaint}" for complaint in found]
        if cycle >= 0:
            whole.seconds.append(took)
            for name, times in phases.items():
                times.seconds.append(plan.seconds[name])
            on_cycle()
    gc.unfreeze()
    assert plan is not None
    return Measurement(
        whole=whole,
        phases=phases,
        actions=plan.counts(),
        unmet=unmet_needs(plan),
        digest=plan.digest(),
        peak_memory_bytes=peak_memory(),
        bytes_per_machine=world.inventory.memory()["per_machine"],
        complaints=complaints,
    )


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _keep_garbage_out() -> None:
    """What was built before is not looked at again by every collection of the timed cycles."""
    gc.collect()
    gc.freeze()


@dataclass
class _Repeated:
    """The same cycle again and again."""

    world: ScenarioState
    engine: Engine

    def __post_init__(self) -> None:
        self._before = self.world.inventory.snapshot()

    def cycle(self) -> Plan:
        world = self.world
        plan = self.engine.decide(
            world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
        )
        carry_out(plan, world.inventory, world.now)
        return plan

    def afterwards(self, plan: Plan) -> None:
        put_back(plan, self.world.inventory, self._before)


class _Steady:
    """A fleet that goes on living: rows grow and shrink by one unit."""

    def __init__(self, world: ScenarioState, engine: Engine, seed: int) -> None:
        self.world = world
        self.engine = engine
        self.churn = Churn(world.demand, seed)

    def cycle(self) -> Plan:
        world = self.world
        world.demand = self.churn.next(world.demand, world.now)
        plan = self.engine.decide(
            world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
        )
        carry_out(plan, world.inventory, world.now)
        world.carry = plan.carry
        return plan

    def afterwards(self, plan: Plan) -> None:
        self.world.now += TICK


class Churn:
    """Seeded changes of a demand: a row grows or shrinks by one unit, and next time goes back."""

    def __init__(self, demand: Demand, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        rows = len(demand)
        self._count = max(1, round(rows * CHURN)) if rows else 0
        self._offset = np.zeros(rows, np.int64)
        # A row of one unit can only grow; a row without a unit changes by nothing.
        self._may_shrink = np.asarray((demand.aggregate >= 2 * demand.unit).all(axis=1))

    def next(self, demand: Demand, now: int) -> Demand:
        """The demand with some rows changed."""
        rows = self._rng.choice(len(demand), self._count, replace=False)
        away = np.where(self._may_shrink[rows] & (self._rng.random(len(rows)) < 0.5), -1, 1)
        step = np.where(self._offset[rows] == 0, away, -self._offset[rows])
        self._offset[rows] += step
        whole, milli = demand.aggregate.copy(), demand.aggregate_milli.copy()
        parts = milli[rows].astype(np.int64) + step[:, None] * demand.unit_milli[rows]
        carried, rest = np.divmod(parts, _MILLI)
        whole[rows] += step[:, None] * demand.unit[rows] + carried
        milli[rows] = rest
        shrunk_at = demand.shrunk_at.copy()
        shrunk_at[rows[step < 0]] = now
        return demand.with_amounts(whole, milli, shrunk_at)
