"""What a cycle hands back: actions, claims, stamps, a verdict per need, and the next carry.

A plan is columns over machines and rows; values for people and for other processes are made from
it one at a time, when they are asked for.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bigfleet.decision.carry import Carry
from bigfleet.decision.kinds import ActionKind, Reason
from bigfleet.model.columns import Demand, MachineColumns

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to one machine."""

    kind: ActionKind
    machine: str
    cluster: str
    """Destination of Bootstrap and Provision; the cluster being left by Reclaim and Preempt."""
    need: int
    """Row of the demand it is done for; -1 for none."""
    grace_seconds: int
    reason: str


@dataclass(frozen=True)
class ActionColumns:
    """Columns over actions, in the order they were decided."""

    kind: I8
    machine: I32
    cluster: I32
    row: I32
    grace: I32

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True)
class Stamps:
    """Stamps given in this cycle: machines, identities, sequence numbers."""

    machine: I32
    identity: I32
    sequence: I64


@dataclass(frozen=True)
class VerdictColumns:
    """Columns over rows (normalised needs, in the total order)."""

    need: I64
    """Demand row, -1 for a folded row."""
    members_at: I64
    members: I64
    """Demand rows behind each row."""
    satisfied: npt.NDArray[np.bool_]
    deficit: I64
    """[row, resource] in counted units; ``Plan.missing`` gives them by name."""
    short: I64
    """[row, resource] in counted units: the deficit beyond the machines that are being drained for
    the row. ``Plan.short`` gives it by name."""
    scale: I64
    """Milli-units per counted unit of each resource: milli-bytes of a large row fit no column."""
    claimed: I32
    from_idle: I32
    from_speculative: I32
    domain: I32
    domain_key: I32
    satisfiable: npt.NDArray[np.bool_]
    best: I32
    best_mille: I32
    best_ok: npt.NDArray[np.bool_]
    victims: I32
    freed: I64
    """[row, resource] in counted units; ``Plan.freed`` gives them by name."""
    reason: npt.NDArray[np.int16]
    matching: I64
    """[row, machine state]: machines that could serve the row; filled for unsatisfied rows."""
    unmet_since: I64
    """Nanoseconds; 0 for satisfied rows."""
    homeless_since: I64

    def __len__(self) -> int:
        return len(self.need)


@dataclass(frozen=True)
class Counters:
    """How phase 1 went; displacements and exhausted retries cannot happen and stay 0."""

    proposals: int = 0
    conflicts: int = 0
    recomputed: int = 0
    displacements: int = 0
    exhausted_retries: int = 0


@dataclass(frozen=True)
class Plan:
    """The outcome of one cycle."""

    fleet: MachineColumns
    demand: Demand
    """What was decided on: all rows but those of frozen clusters."""
    actions: ActionColumns
    claimed: I32
    """Per machine: the row that claims it, -1 for none."""
    stamps: Stamps
    preempted_for: Stamps
    """For machines that are preempted: the stamp they will carry when they are Idle."""
    phantoms: frozenset[int]
    """Machines that are reclaimed because they have not been Ready nodes for too long."""
    moved_away: Mapping[int, int]
    """Machines that are reclaimed because their gang, a row, serves in another domain now."""
    verdicts: VerdictColumns
    domain_names: Mapping[int, list[str]]
    counters: Counters
    carry: Carry
    frozen: frozenset[str]
    """Clusters that were left out: they keep their machines and get none."""
    withheld: Demand | None
    """The rows of those clusters, which are in no other column; None where there are none."""
    seconds: dict[str, float]
    """What each phase took, by the engine's clock."""

    def __iter__(self) -> Iterator[Action]:
        for i in range(len(self.actions)):
            yield self.action(i)

    def action(self, index: int) -> Action:
        """One action as a value."""
        a = self.actions
        cluster = int(a.cluster[index])
        kind = ActionKind(int(a.kind[index]))
        return Action(
            kind=kind,
            machine=self.fleet.ids[int(a.machine[index])],
            cluster=self.fleet.symbols.clusters[cluster] if cluster >= 0 else "",
            need=self.need_of(int(a.row[index])),
            grace_seconds=int(a.grace[index]),
            reason=self.why(index),
        )

    def need_of(self, row: int) -> int:
        """A demand row that stands for a row of the plan; -1 for none."""
        return -1 if row < 0 else int(self.verdicts.members[self.verdicts.members_at[row]])

    def why(self, index: int) -> str:
        """In words, why an action is in the plan."""
        kind, row = ActionKind(int(self.actions.kind[index])), int(self.actions.row[index])
        machine = int(self.actions.machine[index])
        price = self.fleet.classes.price[self.fleet.cls[machine]] / 1e6
        if kind is ActionKind.RECLAIM:
            if machine in self.fleet.ending_at:
                return "its provider has announced its end"
            if machine in self.phantoms:
                return "its cluster has not seen it Ready for too long"
            if machine in self.moved_away:
                return f"its gang has moved to {self.domain(self.moved_away[machine])}"
            return "no need of its cluster claims it"
        if kind is ActionKind.DELETE:
            return f"idle beyond its hold at ${price:.3f}/h"
        profile = self.demand.symbols.profiles[int(self.demand.profile[self.need_of(row)])]
        asks = f"priority {profile.priority}"
        if kind is ActionKind.BOOTSTRAP:
            return f"cheapest idle machine for {asks}, ${price:.3f}/h"
        if kind is ActionKind.PROVISION:
            return f"no idle machine left; cheapest to create for {asks}, ${price:.3f}/h"
        if kind is ActionKind.KEEP:
            return f"its need is back ({asks})"
        return f"{asks} takes it"

    def counts(self) -> dict[str, int]:
        """Actions by kind."""
        counted = Counter(self.actions.kind.tolist())
        return {ActionKind(kind).title: n for kind, n in sorted(counted.items())}

    def reason(self, row: int) -> Reason:
        """Why a row is unmet."""
        return Reason(int(self.verdicts.reason[row]))

    def missing(self, row: int) -> dict[str, int]:
        """What a row still lacks, in milli-units by resource name."""
        return self._by_name(self.verdicts.deficit[row])

    def short(self, row: int) -> dict[str, int]:
        """What a row lacks beyond the machines that are being drained for it, in milli-units."""
        return self._by_name(self.verdicts.short[row])

    def freed(self, row: int) -> dict[str, int]:
        """What is being freed for a row, in milli-units by resource name."""
        return self._by_name(self.verdicts.freed[row])

    def _by_name(self, counted: I64) -> dict[str, int]:
        names, scale = self.fleet.symbols.resources, self.verdicts.scale
        return {names[int(d)]: int(counted[d]) * int(scale[d]) for d in np.flatnonzero(counted)}

    def domain(self, row: int) -> str:
        """The domain a gang lives in, or empty."""
        key, domain = int(self.verdicts.domain_key[row]), int(self.verdicts.domain[row])
        return self.domain_names[key][domain].replace("\x00", ",") if domain >= 0 else ""

    def digest(self) -> str:
        """SHA-256 over the sorted set of (kind, machine, cluster)."""
        lines = sorted(f"{a.kind.title} {a.machine} {a.cluster}" for a in self)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
