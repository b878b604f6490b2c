"""Which reclaims had a reason outside the engine, and which had none.

A reclaim is forced when, since the machine was last claimed, its cluster came to ask for less, or
a machine arrived that had been ordered before it did, or supply of the cluster that was counted as
lost came back, or when the machine is not Ready and long past its deadline, or its provider
has announced its end, or the gang it was taken for moves as a whole: because it is new or asks for
something else since a few minutes, and had begun in a place that cannot hold it, or because a need
that comes before it has just taken one of its machines. Everything else is churn at unchanged
demand: its target is zero.

Demand is compared cluster by cluster: which of a cluster's rows a machine could have served is not
asked, so a row that shrank excuses the reclaim of any machine of its cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan, Policy
from bigfleet.decision.plan import Stamps
from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import MachineColumns
from bigfleet.model.lifecycle import BOUND

I64 = npt.NDArray[np.int64]
S = MachineState
_MANY: Final = 4_096
"""Gangs that changed, before those that have settled since are forgotten."""
_ON_ITS_WAY: Final = frozenset({S.CREATING, S.CONFIGURING})


class UnforcedReclaims:
    """What happened to clusters, and since when machines are not claimed."""

    def __init__(self) -> None:
        self._reason_at: dict[str, int] = {}
        self._ordered_at: dict[str, int] = {}
        """By which demand machines are on their way to a cluster: when it was read."""
        self._gangs: dict[tuple[str, str], int] = {}
        """When gangs, by cluster and group, came, asked for something else or lost a machine."""
        self._last_claimed: I64 = np.zeros(0, np.int64)
        self._last_cycle = 0

    def asked_for_less(self, cluster: str, now: int) -> None:
        """A row of a cluster shrank or went away."""
        self._reason_at[cluster] = now

    def gangs_changed(self, cluster: str, groups: Iterable[str], now: int) -> None:
        """Gangs of a cluster are new, or ask for something else."""
        self._gangs.update(((cluster, group), now) for group in groups if group)

    def changed(
        self, before: Machine | None, after: Machine | None, now: int, read_unix_ns: int
    ) -> None:
        """A machine changed; supply that returns makes its replacement surplus.

        `read_unix_ns` is when the demand was read by which machines are ordered now.
        """
        ordered = self._ordered(before, after, read_unix_ns)
        if after is None or after.state not in BOUND or not after.cluster:
            return
        if before is None or before.state is S.FAILED:
            self._reason_at[after.cluster] = now
        elif after.state is S.CONFIGURED and ordered <= self._reason_at.get(after.cluster, -1):
            # Wanted when it was ordered: with it one is surplus that was claimed until now.
            self._reason_at[after.cluster] = now

    def _ordered(self, before: Machine | None, after: Machine | None, read_unix_ns: int) -> int:
        """By which demand a machine was ordered: when that was read."""
        known = after or before
        assert known is not None
        if after is not None and after.state in _ON_ITS_WAY:
            return self._ordered_at.setdefault(known.id, read_unix_ns)
        if after is not None and after.state is S.IDLE and after.stamp is not None:
            return self._ordered_at.get(known.id, read_unix_ns)
        return self._ordered_at.pop(known.id, read_unix_ns)

    def unforced(
        self,
        plan: Plan,
        policy: Policy,
        now: int,
        reclaimed: I64 | None = None,
        read_unix_ns: int | None = None,
    ) -> int:
        """How many reclaims nothing forced. Call it once for every cycle.

        `reclaimed` are the rows really reclaimed; without it those the plan asks for. The plan's
        demand was read at `read_unix_ns`: it does not know of later requests.
        """
        self._note(
            plan.carry.unclaimed_since,
            now,
            now if read_unix_ns is None else read_unix_ns,
        )
        self._note_taken(plan.fleet, plan.stamps, now)
        self._note_taken(plan.fleet, plan.preempted_for, now)
        actions, fleet = plan.actions, plan.fleet
        rows = reclaimed
        if rows is None:
            rows = actions.machine[actions.kind == ActionKind.RECLAIM]
        if len(rows) or len(self._gangs) > _MANY:
            settled = now - policy.readiness_deadline
            self._gangs = {gang: at for gang, at in self._gangs.items() if at > settled}
        if not len(rows):
            return 0
        reasons = np.array(
            [self._reason_at.get(name, 0) for name in fleet.symbols.clusters] or [0], np.int64
        )
        late = [
            row in fleet.ending_at
            or now - fleet.not_ready_since.get(row, now) > policy.readiness_deadline
            or self._was_left_behind(fleet, row)
            for row in rows.tolist()
        ]
        claimed = self._last_claimed[rows]
        return int(((reasons[fleet.cluster[rows]] < claimed) & ~np.array(late)).sum())

    def _was_left_behind(self, fleet: MachineColumns, row: int) -> bool:
        identity = int(fleet.stamp[row])
        if identity < 0 or not self._gangs:
            return False
        stamp = fleet.symbols.stamp(identity, 0)
        return (stamp.cluster, stamp.group) in self._gangs

    def _note_taken(self, fleet: MachineColumns, stamps: Stamps, now: int) -> None:
        """Gangs of which a need of no lower priority takes a machine with this plan."""
        priority = fleet.symbols.identity_column("priority")
        key = fleet.symbols.identity_column("key")
        before, new = fleet.stamp[stamps.machine], stamps.identity
        taken = (before >= 0) & (key[new] != key[before]) & (priority[new] >= priority[before])
        for identity in np.unique(before[taken]).tolist():
            old = fleet.symbols.stamp(identity, 0)
            self.gangs_changed(old.cluster, [old.group], now)

    def _note(self, since: I64, now: int, read_unix_ns: int) -> None:
        grown = np.zeros(len(since), np.int64)
        known = min(len(grown), len(self._last_claimed))
        grown[:known] = self._last_claimed[:known]
        # It is unclaimed since this cycle, so it was claimed in the one before.
        grown[since == now] = self._last_cycle
        self._last_claimed, self._last_cycle = grown, read_unix_ns
