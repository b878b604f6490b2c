"""A fleet in a closed loop with any engine: plans are carried out with random delays.

The loop plays shard and provider: it applies stamps, starts transitions, and lets each end after
a number of cycles drawn from the seed, in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from bigfleet.decision.kinds import ActionKind
from bigfleet.decision.policy import SECOND
from bigfleet.model import Departure, HostRef, Machine, MachineState, Need, Stamp

S = MachineState
Action = tuple[ActionKind, str, str, object, int]
CYCLE = 10 * SECOND


@dataclass
class Planned:
    """What the loop needs of a plan."""

    actions: list[Action]
    stamps: Mapping[str, Stamp]
    preempt_for: Mapping[str, Stamp]


Engine = Callable[[list[Machine], list[Need], int], Planned]


@dataclass
class Loop:
    """Machines, and what is under way with them."""

    machines: dict[str, Machine]
    rng: Random
    delay: tuple[int, int] = (0, 6)
    now: int = 10_000 * SECOND
    due: list[tuple[int, str, MachineState]] = field(default_factory=list)
    counts: list[Counter[ActionKind]] = field(default_factory=list)

    def cycle(self, engine: Engine, needs: list[Need]) -> Planned:
        """Let due transitions end, decide once, carry the plan out."""
        self._complete()
        plan = engine(list(self.machines.values()), needs, self.now)
        for mid, stamp in plan.stamps.items():
            self.machines[mid] = replace(self.machines[mid], stamp=stamp)
        for kind, mid, cluster, _, _ in plan.actions:
            self._start(kind, self.machines[mid], cluster, plan.preempt_for.get(mid))
        self.counts.append(Counter(kind for kind, *_ in plan.actions))
        self.now += CYCLE
        return plan

    def quiet(self) -> bool:
        return not self.due

    def _later(self) -> int:
        return len(self.counts) + 1 + self.rng.randint(*self.delay)

    def _start(self, kind: ActionKind, m: Machine, cluster: str, stamp: Stamp | None) -> None:
        if kind is ActionKind.PROVISION:
            assert m.state is S.SPECULATIVE
            self._move(m, S.CREATING, S.IDLE)
        elif kind is ActionKind.BOOTSTRAP:
            assert m.state is S.IDLE
            self._move(replace(m, cluster=cluster), S.CONFIGURING, S.CONFIGURED)
        elif kind in (ActionKind.RECLAIM, ActionKind.PREEMPT):
            assert m.state is S.CONFIGURED
            assert m.leaving is None
            self.machines[m.id] = replace(m, leaving=Departure(stamp, self.now))
            self.due.append((self._later(), m.id, S.DRAINING))
        elif kind is ActionKind.KEEP:
            assert m.state is S.CONFIGURED
            assert m.leaving is not None
            self.machines[m.id] = replace(m, leaving=None)
            self.due = [d for d in self.due if d[1] != m.id]
        else:
            assert m.state is S.IDLE
            self._move(replace(m, stamp=None), S.DELETING, S.SPECULATIVE)

    def _move(self, m: Machine, state: MachineState, end: MachineState) -> None:
        self.machines[m.id] = replace(m, state=state)
        self.due.append((self._later(), m.id, end))

    def _complete(self) -> None:
        cycle = len(self.counts)
        ready = [d for d in self.due if d[0] <= cycle]
        self.due = [d for d in self.due if d[0] > cycle]
        self.rng.shuffle(ready)
        for _, mid, end in ready:
            m = self.machines[mid]
            if end is S.DRAINING:
                self._move(m, S.DRAINING, S.IDLE)
            elif end is S.IDLE and m.state is S.DRAINING:
                assert m.leaving is not None
                stamp = m.leaving.for_stamp
                self.machines[mid] = replace(
                    m, state=S.IDLE, cluster="", stamp=stamp, leaving=None, idle_since_ns=self.now
                )
            elif end is S.IDLE:
                host = m.host or HostRef("p", mid)
                self.machines[mid] = replace(m, state=S.IDLE, host=host, idle_since_ns=self.now)
            elif end is S.SPECULATIVE:
                self.machines[mid] = replace(m, state=S.SPECULATIVE, host=None)
            else:
                self.machines[mid] = replace(m, state=end)
