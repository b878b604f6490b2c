"""A plan told in the words of the file it was made from: needs by their place in the file.

The engine adds up equal rows and folds small gangs; a reader of a scenario wants to know about
row 7 of the file. For a folded row the members that hold a machine count as served first, then
the others in the order of the row: the engine gives a row its capacity, not a member its share.
A served member counts one machine at least, which it may share with others of its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan, Reason
from bigfleet.model import Resources, format_resources
from bigfleet.scenario.state import ScenarioState

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """One thing to do, for which need of the file."""

    kind: ActionKind
    machine: str
    cluster: str
    need: int | None
    reason: str
    grace_seconds: int

    def to_json(self) -> dict[str, object]:
        """The shape of the specification."""
        return {
            "kind": self.kind.title,
            "machine": self.machine,
            "cluster": self.cluster,
            "need": self.need,
            "reason": self.reason,
            "grace_seconds": self.grace_seconds,
        }


@dataclass(frozen=True, slots=True)
class NeedOutcome:
    """What became of one need of the file; `row` is its row of the plan."""

    index: int
    row: int
    cluster: str
    satisfied: bool
    deficit: Resources
    reason: Reason
    claimed: int
    domain: str

    def to_json(self) -> dict[str, object]:
        """The shape of the specification."""
        return {
            "index": self.index,
            "cluster": self.cluster,
            "satisfied": self.satisfied,
            "deficit": format_resources(self.deficit),
            "reason": self.reason.name if self.reason else "",
            "claimed": self.claimed,
            "domain": self.domain,
        }


class ScenarioOutcome:
    """A plan and the world it was made for."""

    def __init__(self, world: ScenarioState, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        verdicts = plan.verdicts
        self._row_of_demand = np.full(len(plan.demand), -1, np.int64)
        members = np.diff(verdicts.members_at)
        self._row_of_demand[verdicts.members] = np.repeat(np.arange(len(verdicts)), members)
        # One place more than there are identities: no stamp, -1, finds none there.
        self._demand_of_identity = np.full(plan.fleet.symbols.identity_count + 1, -1, np.int64)
        self._demand_of_identity[plan.demand.identity] = np.arange(len(plan.demand))
        self._file_row = world.file_row_of
        self._stamp = self._stamps_after()

    def to_json(self) -> dict[str, object]:
        """Actions, and needs in the order of the file."""
        return {
            "actions": [action.to_json() for action in self.actions()],
            "needs": [need.to_json() for need in self.needs()],
        }

    def actions(self) -> Iterator[ActionOutcome]:
        """Every action, in the order it was decided."""
        columns = self.plan.actions
        for i, action in enumerate(self.plan):
            row, machine = int(columns.row[i]), int(columns.machine[i])
            yield ActionOutcome(
                action.kind,
                action.machine,
                action.cluster,
                None if row < 0 else self._need_behind(row, machine),
                action.reason,
                action.grace_seconds,
            )

    def needs(self) -> Iterator[NeedOutcome]:
        """Every need of the file, in its order."""
        of_demand: dict[int, NeedOutcome] = {}
        for row in range(len(self.plan.verdicts)):
            of_demand |= self._members(row)
        for index in range(len(self.world.scenario.needs)):
            yield replace(of_demand[int(self.world.row_of[index])], index=index)

    def need(self, index: int) -> NeedOutcome:
        """One need of the file."""
        demand_row = int(self.world.row_of[index])
        row = int(self._row_of_demand[demand_row])
        return replace(self._members(row)[demand_row], index=index)

    def machines_of(self, need: NeedOutcome) -> I64:
        """The machines the plan claims for a need (all of its row's, where rows were folded)."""
        return np.flatnonzero(self.plan.claimed == need.row)

    def _members(self, row: int) -> dict[int, NeedOutcome]:
        """The rows of the demand behind a row of the plan, and what became of each."""
        plan, verdicts = self.plan, self.plan.verdicts
        members = verdicts.members[verdicts.members_at[row] : verdicts.members_at[row + 1]]
        folded = int(verdicts.need[row]) < 0
        unserved = self._unserved(row, members) if folded else set()
        found = {}
        for member in members.tolist():
            if folded:
                satisfied = member not in unserved
                deficit = {} if satisfied else self.world.needs[member].aggregate
            else:
                satisfied, deficit = bool(verdicts.satisfied[row]), plan.missing(row)
            found[member] = NeedOutcome(
                index=int(self._file_row[member]),
                row=row,
                cluster=self.world.needs[member].cluster,
                satisfied=satisfied,
                deficit=deficit,
                reason=Reason.NONE if satisfied else plan.reason(row),
                claimed=self._claimed(member, satisfied) if folded else int(verdicts.claimed[row]),
                domain=plan.domain(row),
            )
        return found

    def _claimed(self, member: int, satisfied: bool) -> int:
        return max(int(self._claims[member]), int(satisfied))

    def _unserved(self, row: int, members: I64) -> set[int]:
        """Members of a folded row whose share is missing."""
        missing = _missing_members(self.plan, row)
        order = np.argsort(self._claims[members] == 0, kind="stable")
        return set(members[order[max(0, len(members) - missing) :]].tolist())

    @cached_property
    def _claims(self) -> I64:
        """Machines claimed per row of the demand, by the stamps they carry after the plan."""
        claimed = np.flatnonzero(self.plan.claimed >= 0)
        owners = self._demand_of_identity[self._stamp[claimed]]
        own = (owners >= 0) & (self._row_of_demand[owners] == self.plan.claimed[claimed])
        return np.bincount(owners[own], minlength=len(self.plan.demand))

    def _need_behind(self, row: int, machine: int) -> int:
        """The need of the file an action is for: the one stamped, if it is one of the row's."""
        stamped = int(self._demand_of_identity[self._stamp[machine]])
        if stamped < 0 or self._row_of_demand[stamped] != row:
            stamped = self.plan.need_of(row)
        return int(self._file_row[stamped])

    def _stamps_after(self) -> I32:
        """Per machine: the identity it is stamped with once the plan is carried out."""
        stamps = self.plan.fleet.stamp.copy()
        for given in (self.plan.stamps, self.plan.preempted_for):
            stamps[given.machine] = given.identity
        return stamps


def unmet_needs(plan: Plan) -> int:
    """How many needs a plan leaves unmet; of a folded row the members it does not serve."""
    verdicts = plan.verdicts
    rows = np.flatnonzero(~verdicts.satisfied)
    folded = rows[verdicts.need[rows] < 0]
    return len(rows) - len(folded) + sum(_missing_members(plan, row) for row in folded.tolist())


def _missing_members(plan: Plan, row: int) -> int:
    """How many members of a folded row go without; all of them ask for the same."""
    demand, first = plan.demand, plan.need_of(row)

    def asked(name: str) -> int:
        d = demand.symbols.resources.find(name)
        return 1000 * int(demand.aggregate[first, d]) + int(demand.aggregate_milli[first, d])

    # Where thousandths were rounded up what is missing is a little more than a multiple.
    return min((lacks // asked(name) for name, lacks in plan.missing(row).items()), default=0)
