"""Which moves to begin: a function of what shards reported, of moves under way and of the tables.

Shortfalls old enough and free of topology are gone through by priority, then age. What moves under
way already bring is taken off; for the rest the tiers are asked one after the other (`donors`).
Everything that is not acted on has a reason. The same input gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.planning.catalogue import Catalogue
from bigfleet.coordinator.rebalance.planning.donors import Donation, Donors
from bigfleet.coordinator.rebalance.planning.report_reader import (
    Key,
    PlanningInput,
    ReportedShortfall,
    ShardView,
)
from bigfleet.coordinator.rebalance.planning.supply import SpareSupply
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import MachineShape, Move, MovePhase
from bigfleet.model import format_resources, parse_resources
from bigfleet.wire.needs import requirements_to_proto

_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SuppressedShortfall:
    """A shortfall that is not acted on, and why."""

    shard: str
    fingerprint: str
    reason: str
    """cooldown, no_donor, donor_margin, topology or too_young."""


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """Moves to begin, and what is left undone."""

    moves: tuple[Move, ...] = ()
    suppressed: tuple[SuppressedShortfall, ...] = ()


def plan(
    catalogue: Catalogue, views: Sequence[ShardView], known: PlanningInput, mint: Callable[[], str]
) -> RebalancePlan:
    """One round. `views` are those of fresh reports; `mint` gives ids to new moves."""
    suppressed: list[SuppressedShortfall] = []
    eligible: list[ReportedShortfall] = []
    for view in views:
        for shortfall in view.shortfalls:
            if shortfall.age <= rules.ESCALATION_AGE:
                suppressed.append(
                    SuppressedShortfall(shortfall.shard, shortfall.fingerprint, "too_young")
                )
            elif shortfall.is_constrained:
                suppressed.append(
                    SuppressedShortfall(shortfall.shard, shortfall.fingerprint, "topology")
                )
            else:
                eligible.append(shortfall)
    if not eligible:
        return RebalancePlan((), tuple(suppressed))
    eligible.sort(key=lambda one: (-one.priority, -one.age, one.shard, one.fingerprint))
    supply = SpareSupply(catalogue, views, known.moves, known.quotas, known.now)
    donors = Donors(supply, known)
    coming = _coming(catalogue, known)
    room = rules.MOST_MOVES - sum(move.phase is MovePhase.PLANNED for move in known.moves)
    moves: list[Move] = []
    wishes = _Wishes(catalogue)
    for shortfall in eligible:
        missing = _beyond(
            shortfall.deficit, coming.get((shortfall.shard, shortfall.fingerprint), {})
        )
        if not missing:
            continue
        found = donors.find(shortfall, missing, room - len(moves))
        moves += [_move(mint(), shortfall, one, wishes, known) for one in found.donations]
        if not found.donations and found.why_not:
            suppressed.append(
                SuppressedShortfall(shortfall.shard, shortfall.fingerprint, found.why_not)
            )
    return RebalancePlan(tuple(moves), tuple(suppressed))


def none_eligible(reports: Iterable[ReceivedReport]) -> RebalancePlan:
    """A round in which no shortfall is old enough and free of topology: only why not."""
    return RebalancePlan(
        (),
        tuple(
            SuppressedShortfall(
                report.shard_id,
                one.profile_fingerprint,
                "too_young" if one.age_cycles <= rules.ESCALATION_AGE else "topology",
            )
            for report in reports
            for one in report.shortfalls
        ),
    )


def _coming(catalogue: Catalogue, known: PlanningInput) -> dict[Key, dict[str, int]]:
    """What moves will bring, or have brought without the recipient saying so yet."""
    coming: dict[Key, dict[str, int]] = {}
    for move in known.moves:
        if move.phase is MovePhase.ABANDONED:
            continue
        has_arrived = move.phase in (MovePhase.RECIPIENT_ADOPTED, MovePhase.DONE)
        if has_arrived and known.now - move.updated_at > rules.ARRIVAL_SECONDS * _NS:
            continue
        wish = move.wish
        kind = catalogue.at((wish.instance_type, wish.zone, wish.provider, wish.region))
        # A machine of unknown size holds at least the unit it was asked for.
        each = kind.allocatable if kind else parse_resources(dict(wish.min_unit))
        brings = coming.setdefault((move.recipient, move.fingerprint), {})
        for name, amount in each.items():
            count = len(move.machine_ids) or move.count
            brings[name] = brings.get(name, 0) + count * amount
    return coming


def _beyond(deficit: Mapping[str, int], coming: Mapping[str, int]) -> dict[str, int]:
    """What is missing beyond what comes."""
    return {
        name: amount - coming.get(name, 0)
        for name, amount in deficit.items()
        if amount > coming.get(name, 0)
    }


class _Wishes:
    """Shapes as they are written into moves, each once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._parts: dict[int, MachineShape] = {}

    def of(self, shape: int) -> MachineShape:
        """A wish without place and priority."""
        wish = self._parts.get(shape)
        if wish is None:
            wanted = self._catalogue.shapes[shape]
            wish = self._parts[shape] = MachineShape(
                requirements=tuple(
                    (one.key, int(one.operator), tuple(one.values))
                    for one in requirements_to_proto(wanted.requirements)
                ),
                min_unit=tuple(format_resources(dict(wanted.min_unit)).items()),
                tolerations=tuple(
                    (one.key, str(one.operator), one.value, one.effect)
                    for one in wanted.tolerations or ()
                ),
                is_tolerations_stated=wanted.tolerations is not None,
            )
        return wish


def _move(
    name: str,
    shortfall: ReportedShortfall,
    donation: Donation,
    wishes: _Wishes,
    known: PlanningInput,
) -> Move:
    wanted, place = wishes.of(shortfall.shape), donation.place
    return Move(
        id=name,
        tier=donation.tier,
        donor=donation.donor,
        recipient=shortfall.shard,
        count=donation.count,
        wish=replace(
            wanted, instance_type=place[0], zone=place[1], provider=place[2], region=place[3],
            priority=shortfall.priority, interruption_penalty_bucket=shortfall.interruption,
        ),
        escalated_at=known.escalated.get((shortfall.shard, shortfall.fingerprint), known.now),
        fingerprint=shortfall.fingerprint,
        reason=f"{shortfall.shard} lacks it at priority {shortfall.priority} "
        f"for {shortfall.age} cycles",
    )  # fmt: skip
