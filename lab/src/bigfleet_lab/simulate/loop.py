"""The engine in a closed loop with the fleet it changes, on virtual time.

The loop plays shard and provider: it carries plans out, lets every transition take a number of
cycles drawn from the seed, so that completions arrive in any order, and counts what a plan must
never do at unchanged demand. A machine that is reclaimed or preempted is first in its grace
(leaving), then Draining; both take a drain delay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Engine, Plan
from bigfleet.decision.policy import TICK
from bigfleet.model import MachineState
from bigfleet.model.columns import Demand, Flag
from bigfleet.scenario.errors import DelayError
from bigfleet.scenario.outcome import unmet_needs
from bigfleet.scenario.state import ScenarioState
from bigfleet_lab.simulate.plan_execution import rows_of

I64 = npt.NDArray[np.int64]
S = MachineState

_RANGE: Final = re.compile(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?")
_COSTS: Final = (S.CREATING, S.IDLE, S.CONFIGURING, S.CONFIGURED, S.DRAINING)
_NOT_DUE: Final = -1


@dataclass(frozen=True, slots=True)
class Delay:
    """A transition takes so many cycles; 0 ends before the next one."""

    least: int = 0
    most: int = 0

    @classmethod
    def parse(cls, text: str) -> Delay:
        """A range as it is written: `0..6`, or one number."""
        match = _RANGE.fullmatch(text)
        if match is None:
            raise DelayError(f"delay {text!r} is not a range of cycles: write it like 0..6")
        least, most = int(match[1]), int(match[2] or match[1])
        if least > most:
            raise DelayError(f"delay {text!r} ends before it begins: write {most}..{least}")
        return cls(least, most)

    def __str__(self) -> str:
        return f"{self.least}..{self.most}"


@dataclass(frozen=True, slots=True)
class Delays:
    """How long each kind of transition takes. A Delete takes as long as a Create."""

    create: Delay = Delay(0, 6)
    configure: Delay = Delay(0, 3)
    drain: Delay = Delay(0, 6)


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What one cycle decided, and how the fleet stood then."""

    cycle: int
    actions: dict[str, int]
    unmet: int
    under_way: int
    dollars_per_hour: float


@dataclass
class Loop:
    """One fleet living through cycles."""

    world: ScenarioState
    delays: Delays
    seed: int
    engine: Engine = field(default_factory=Engine)
    cycle_ns: int = TICK
    reports: list[CycleReport] = field(default_factory=list)
    reclaims_at_unchanged_demand: int = 0
    over_acquired: int = 0

    def __post_init__(self) -> None:
        fleet = self.world.inventory.snapshot()
        self._rng = np.random.default_rng(self.seed)
        self._due = np.full(len(fleet), _NOT_DUE, np.int64)
        self._sequence_after = np.zeros(len(fleet), np.int64)
        self._ever_claimed = np.zeros(len(fleet), np.bool_)
        self._acquired = np.zeros(len(fleet), np.bool_)
        for states, delay in (
            ((S.CREATING, S.DELETING), self.delays.create),
            ((S.CONFIGURING,), self.delays.configure),
            ((S.DRAINING,), self.delays.drain),
        ):
            self._schedule(np.flatnonzero(np.isin(fleet.state, states)), delay)

    @property
    def cycle(self) -> int:
        """How many cycles there have been."""
        return len(self.reports)

    @property
    def under_way(self) -> int:
        """Transitions that have not ended."""
        return int((self._due != _NOT_DUE).sum())

    @property
    def settled_at(self) -> int | None:
        """The first cycle (from 1) from which on nothing was decided; None while it is not over."""
        if not self.reports or self.reports[-1].actions or self.under_way:
            return None
        busy = [report.cycle for report in self.reports if report.actions]
        return busy[-1] + 1 if busy else 1

    @property
    def over_acquisition(self) -> int:
        """Machines acquired here that no need wanted after all: given up, or idle for no need."""
        fleet = self.world.inventory.snapshot()
        idle = self._acquired & (fleet.state == S.IDLE)
        # While something is under way an idle machine may be on its way to being bound.
        return self.over_acquired + (0 if self.settled_at is None else int(idle.sum()))

    def run(self, cycles: int) -> Iterator[CycleReport]:
        """So many cycles at unchanged demand."""
        for _ in range(cycles):
            self.step()
            yield self.reports[-1]

    def change_demand(self, demand: Demand) -> None:
        """Other demand from the next cycle on: what is given up then was not taken in vain."""
        self.world.demand = demand
        self._ever_claimed[:] = False
        self._acquired[:] = False

    def step(self) -> Plan:
        """Let due transitions end, decide once, and start what was decided."""
        world = self.world
        self._complete()
        plan = self.engine.decide(
            world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
        )
        world.carry = plan.carry
        self._judge(plan)
        self._start(plan)
        self.reports.append(
            CycleReport(
                cycle=self.cycle + 1,
                actions=plan.counts(),
                unmet=unmet_needs(plan),
                under_way=self.under_way,
                dollars_per_hour=self.dollars_per_hour(),
            )
        )
        world.now += self.cycle_ns
        return plan

    def dollars_per_hour(self) -> float:
        """What the machines that exist cost."""
        fleet = self.world.inventory.snapshot()
        paid = fleet.cls[np.isin(fleet.state, _COSTS)]
        return float(fleet.classes.price[paid].sum()) / 1e6

    def _judge(self, plan: Plan) -> None:
        """Count what must not happen at unchanged demand."""
        reclaimed, deleted = rows_of(plan, ActionKind.RECLAIM), rows_of(plan, ActionKind.DELETE)
        unnamed = [m for m in reclaimed.tolist() if m not in plan.moved_away]
        self.reclaims_at_unchanged_demand += int(self._ever_claimed[unnamed].sum())
        given_up = np.concatenate([reclaimed, deleted])
        self.over_acquired += int(self._acquired[given_up].sum())
        self._acquired[given_up] = False
        self._acquired[rows_of(plan, ActionKind.PREEMPT)] = False
        self._acquired[rows_of(plan, ActionKind.BOOTSTRAP)] = True
        self._acquired[rows_of(plan, ActionKind.PROVISION)] = True
        self._ever_claimed |= plan.claimed >= 0

    def _start(self, plan: Plan) -> None:
        inventory, delays, now = self.world.inventory, self.delays, self.world.now
        stamps, meant = plan.stamps, plan.preempted_for
        inventory.stamp(stamps.machine, stamps.identity, stamps.sequence)
        created = rows_of(plan, ActionKind.PROVISION)
        self._move(created, S.CREATING, delays.create)
        bound = rows_of(plan, ActionKind.BOOTSTRAP)
        self._move(bound, S.CONFIGURING, delays.configure)
        inventory.bind(bound, plan.actions.cluster[plan.actions.kind == ActionKind.BOOTSTRAP])
        inventory.set_idle_since(bound, 0)
        reclaimed = rows_of(plan, ActionKind.RECLAIM)
        inventory.set_leaving(reclaimed, -1, now)
        inventory.set_leaving(meant.machine, meant.identity, now)
        self._sequence_after[meant.machine] = meant.sequence
        self._schedule(np.concatenate([reclaimed, meant.machine]), delays.drain)
        kept = rows_of(plan, ActionKind.KEEP)
        inventory.clear_leaving(kept)
        self._due[kept] = _NOT_DUE
        deleted = rows_of(plan, ActionKind.DELETE)
        inventory.clear_stamp(deleted)
        self._move(deleted, S.DELETING, delays.create)

    def _complete(self) -> None:
        """End what is due. Machines do not meet here, so the order does not matter."""
        inventory, now = self.world.inventory, self.world.now
        fleet = inventory.snapshot()
        due = np.flatnonzero((self._due != _NOT_DUE) & (self._due <= self.cycle))
        self._due[due] = _NOT_DUE
        state = fleet.state[due]
        created = due[state == S.CREATING]
        inventory.set_state(created, S.IDLE)
        inventory.set_idle_since(created, now)
        inventory.set_state(due[state == S.CONFIGURING], S.CONFIGURED)
        inventory.set_state(due[state == S.DELETING], S.SPECULATIVE)
        drained = due[state == S.DRAINING]
        inventory.stamp(drained, fleet.leaving_for[drained], self._sequence_after[drained])
        inventory.clear_leaving(drained)
        inventory.unbind(drained)
        inventory.set_state(drained, S.IDLE)
        inventory.set_idle_since(drained, now)
        leaving = due[(state == S.CONFIGURED) & (fleet.flags[due] & Flag.LEAVING > 0)]
        self._move(leaving, S.DRAINING, self.delays.drain)

    def _move(self, rows: I64, state: MachineState, delay: Delay) -> None:
        self.world.inventory.set_state(rows, state)
        self._schedule(rows, delay)

    def _schedule(self, rows: I64, delay: Delay) -> None:
        waits = self._rng.integers(delay.least, delay.most, len(rows), endpoint=True)
        self._due[rows] = self.cycle + 1 + waits
