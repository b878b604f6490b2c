"""Who gives, tier by tier.

    idle      Idle machines beyond a donor's own unmet demand and its margin
    quota     Speculative machines it does not need, with the quota for them
    preempt   machines that serve lower priority, where the first two have nothing left at all

A donor is not asked for machines that it lately had none of, nor by a shard it lately got machines
from. Donors with the most to give come first, so that few moves do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.planning.catalogue import I64, Place
from bigfleet.coordinator.rebalance.planning.report_reader import PlanningInput, ReportedShortfall
from bigfleet.coordinator.rebalance.planning.supply import SpareSupply, less
from bigfleet.coordinator.rebalance.planning.usage import UsageTable
from bigfleet.coordinator.state import Move, MovePhase, Tier

_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Donation:
    """So many machines of one donor."""

    donor: str
    tier: Tier
    place: Place
    count: int


@dataclass(frozen=True, slots=True)
class DonorSearch:
    """What there is for a shortfall; where there is nothing, why."""

    donations: tuple[Donation, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class _Spare:
    """Per shard, what it could give to one recipient."""

    rows: I64
    beyond: I64
    """Idle machines, however many a round may take."""
    allowed: I64
    """Those of them that this round may take."""
    unused: I64
    """Speculative machines."""


class Donors:
    """Everybody's spare machines in one round."""

    def __init__(self, supply: SpareSupply, known: PlanningInput) -> None:
        self._supply, self._providers = supply, known.providers
        self._is_whole = known.is_whole
        self._bound = UsageTable(supply)
        self._preempted = 0
        self._spent: set[int] = set()
        """Shapes of which no shard has anything left; nothing comes back within a round."""
        self._opposite_pairs: set[tuple[str, str]] = set()
        """Donor and recipient between whom machines lately went the other way."""
        self._empty_donors: dict[tuple[str, str, Tier], set[str]] = {}
        """For a recipient, fingerprint and tier: donors that lately had nothing."""
        self._under_way: set[tuple[str, str]] = set()
        """Recipient and fingerprint for which something is on its way."""
        for move in known.moves:
            self._note(move, known.now)

    def _note(self, move: Move, now: int) -> None:
        is_recent = now - move.updated_at < rules.COOLDOWN_SECONDS * _NS
        if move.phase is MovePhase.ABANDONED:
            if is_recent and not move.machine_ids:
                key = (move.recipient, move.fingerprint, move.tier)
                self._empty_donors.setdefault(key, set()).add(move.donor)
            return
        if is_recent or not move.phase.is_over:
            self._opposite_pairs.add((move.recipient, move.donor))
        if not move.phase.is_over:
            self._under_way.add((move.recipient, move.fingerprint))

    def find(self, shortfall: ReportedShortfall, missing: dict[str, int], room: int) -> DonorSearch:
        """Donations that cover as much of what is missing as there is, in at most `room` moves."""
        if room <= 0:
            return DonorSearch()
        spare = self._spare(shortfall)
        donations: list[Donation] = []
        if spare is not None:
            missing = self._give(donations, shortfall, missing, spare, Tier.IDLE, room)
            if missing:
                missing = self._give(donations, shortfall, missing, spare, Tier.QUOTA, room)
        is_used_up = spare is None or not (spare.beyond.any() or spare.unused.any())
        if is_used_up and self._is_whole and shortfall.age > rules.PREEMPTION_AGE:
            self._preempt(donations, shortfall, missing, room)
        for donation in donations:
            self._opposite_pairs.add((shortfall.shard, donation.donor))
        return DonorSearch(tuple(donations), "" if donations else self._why_not(shortfall, spare))

    # -- unused machines -------------------------------------------------------------------------

    def _spare(self, shortfall: ReportedShortfall) -> _Spare | None:
        """What others have for a shortfall now; None where no shard has anything."""
        if shortfall.shape in self._spent:
            return None
        supply = self._supply
        rows = self._reachable(shortfall)
        beyond, unused = supply.beyond_margin(rows), supply.unused(rows)
        if not beyond.any() and not unused.any():
            if len(rows) == len(supply.rows(shortfall.shape)):
                self._spent.add(shortfall.shape)
            return None
        for tier, column in ((Tier.IDLE, beyond), (Tier.QUOTA, unused)):
            column[supply.number[shortfall.shard]] = 0
            for donor in self._empty_donors.get((shortfall.shard, shortfall.fingerprint, tier), ()):
                if donor in supply.number:
                    column[supply.number[donor]] = 0
        return _Spare(rows, beyond, np.minimum(beyond, supply.budget), unused)

    def _reachable(self, shortfall: ReportedShortfall) -> I64:
        """Rows of providers that the recipient uses."""
        rows = self._supply.rows(shortfall.shape)
        closed = {name for name, one in self._providers.items() if not one.serves(shortfall.shard)}
        if not closed:
            return rows
        kinds = self._supply.catalogue.kinds
        is_open = np.array([kind.provider not in closed for kind in kinds], np.bool_)
        return rows[is_open[self._supply.kind[rows]]]

    def _give(
        self,
        donations: list[Donation],
        shortfall: ReportedShortfall,
        missing: dict[str, int],
        spare: _Spare,
        tier: Tier,
        room: int,
    ) -> dict[str, int]:
        """Take from the shard that may give most; what is missing afterwards."""
        supply = self._supply
        allowed = spare.allowed if tier is Tier.IDLE else spare.unused
        for donor in np.argsort(-allowed, kind="stable").tolist():
            if not allowed[donor] or not missing or len(donations) >= room:
                break
            name = supply.views[donor].shard
            if (name, shortfall.shard) in self._opposite_pairs:
                continue
            theirs = spare.rows[supply.shard[spare.rows] == donor]
            left = int(allowed[donor])
            for row in supply.spare_of(theirs, tier):
                kind = supply.kind_of(row)
                count = min(left, supply.left(row, tier), kind.hosting(missing))
                if count:
                    supply.take(row, tier, count)
                    donations.append(Donation(name, tier, kind.place, count))
                    left -= count
                    missing = less(missing, kind, count)
                if not left or not missing or len(donations) >= room:
                    break
        return missing

    # -- machines that serve lower priority ------------------------------------------------------

    def _preempt(
        self,
        donations: list[Donation],
        shortfall: ReportedShortfall,
        missing: dict[str, int],
        room: int,
    ) -> None:
        """One move for each machine, because each is drained in its own time."""
        if (shortfall.shard, shortfall.fingerprint) in self._under_way:
            return
        empty_donors = self._empty_donors.get(
            (shortfall.shard, shortfall.fingerprint, Tier.PREEMPT), ()
        )
        for use in self._bound.fitting(shortfall.shape):
            donor = self._supply.views[use.shard]
            room_left = min(room - len(donations), rules.MOST_PREEMPTED - self._preempted)
            if not missing or room_left <= 0:
                return
            if donor.shard in empty_donors or donor.shard == shortfall.shard:
                continue
            if (donor.shard, shortfall.shard) in self._opposite_pairs:
                continue
            if any(own.priority >= shortfall.priority for own in donor.shortfalls):
                continue
            # Of a machine of unknown size, one is asked for and then looked again.
            count = 1 if use.kind is None else min(use.count, use.kind.hosting(missing))
            count = min(count, room_left)
            donations += [
                Donation(donor.shard, Tier.PREEMPT, (use.instance_type, "", "", ""), 1)
            ] * count
            self._preempted += count
            missing = {} if use.kind is None else less(missing, use.kind, count)

    # -- reasons ---------------------------------------------------------------------------------

    def _why_not(self, shortfall: ReportedShortfall, spare: _Spare | None) -> str:
        if spare is None:
            there = self._supply.there(self._reachable(shortfall))
            there[self._supply.number[shortfall.shard]] = 0
            return "donor_margin" if there.any() else "no_donor"
        could = np.flatnonzero(spare.allowed + spare.unused).tolist()
        if any(
            (self._supply.views[one].shard, shortfall.shard) in self._opposite_pairs
            for one in could
        ):
            return "cooldown"
        # What is left is more than this round may take, or what donors said they have not.
        return "donor_margin" if spare.beyond.any() else "no_donor"
