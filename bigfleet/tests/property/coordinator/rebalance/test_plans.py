"""Whatever shards report: plans that keep every promise of a round, and the same plan each time."""

from __future__ import annotations

import itertools
import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.coordinator.rebalance import RebalancePlan, plan
from bigfleet.coordinator.rebalance.planning.report_reader import PlanningInput, ReportReader
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import MachineShape, Move, MovePhase, Tier
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider

SECOND = 1_000_000_000
NOW = 1_000_000 * SECOND
NAMES = ("a", "b", "c", "d")
CPUS = {"small": 2, "large": 8}
Operator = capacity.NodeSelectorRequirement


@st.composite
def rows(draw: st.DrawFn) -> list[pb.FreeClass]:
    found = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(sorted(CPUS)), st.sampled_from(["arm", "amd"])),
            st.tuples(st.integers(0, 60), st.integers(0, 30)),
        )
    )
    return [
        pb.FreeClass(
            instance_type=f"{kind}-{arch}", zone="z", provider="p", region="r", idle=idle,
            speculative=slots, labels={"arch": arch},
            allocatable=provider.Resources(resources={"cpu": str(CPUS[kind])}),
        )
        for (kind, arch), (idle, slots) in found.items()
    ]  # fmt: skip


@st.composite
def lacks(draw: st.DrawFn) -> list[pb.Shortfall]:
    return [
        pb.Shortfall(
            requirements=[Operator(key="arch", operator=Operator.OPERATOR_IN, values=[arch])],
            deficit=provider.Resources(resources={"cpu": str(draw(st.integers(1, 300)))}),
            min_unit=provider.Resources(resources={"cpu": draw(st.sampled_from(["1", "4"]))}),
            priority=draw(st.integers(0, 3)),
            age_cycles=draw(st.integers(1, 20)),
            interruption_penalty_bucket=capacity.PenaltyBucket.ValueType(3),
            topology_constrained=draw(st.booleans()) and draw(st.booleans()),
            profile_fingerprint=arch,
        )
        for arch in draw(st.sets(st.sampled_from(["arm", "amd"])))
    ]


@st.composite
def fleets(draw: st.DrawFn) -> list[ReceivedReport]:
    return [
        ReceivedReport(
            name, 1, 1, NOW, 0.0,
            pb.ShardSummary(
                free_by_class=draw(rows()),
                per_instance_type_counts={"small-arm": draw(st.integers(0, 200))},
            ).SerializeToString(),
            NOW, tuple(draw(lacks())),
        )
        for name in NAMES
    ]  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[Move]:
    moves = []
    for number in range(draw(st.integers(0, 4))):
        donor, recipient = draw(st.permutations(NAMES))[:2]
        arch = draw(st.sampled_from(["arm", "amd"]))
        since = NOW - draw(st.integers(0, 120)) * SECOND
        phase = draw(st.sampled_from(list(MovePhase)))
        moves.append(
            Move(
                f"old-{number}", draw(st.sampled_from([Tier.IDLE, Tier.QUOTA])), donor, recipient,
                draw(st.integers(1, 5)), MachineShape(f"large-{arch}", "z", "p", "r"), phase=phase,
                created_at=since, updated_at=since, fingerprint=arch,
            )
        )  # fmt: skip
    return moves


def planned(fleet: list[ReceivedReport], history: list[Move]) -> RebalancePlan:
    reader, numbers = ReportReader(), itertools.count(1)
    views = reader.views(fleet)
    known = PlanningInput(history, now=NOW)
    return plan(reader.catalogue, views, known, lambda: f"m-{next(numbers)}")


def cpus(move: Move) -> int:
    return CPUS[move.wish.instance_type.partition("-")[0]] if move.wish.instance_type else 0


@given(fleets(), histories())
def test_never_more_is_moved_than_is_lacked(
    fleet: list[ReceivedReport], history: list[Move]
) -> None:
    for heard in fleet:
        for lack in heard.shortfalls:
            mine = [
                move
                for move in planned(fleet, history).moves
                if (move.recipient, move.fingerprint) == (heard.shard_id, lack.profile_fingerprint)
            ]
            brought = sum(move.count * cpus(move) for move in mine)
            last = max((cpus(move) for move in mine), default=0)
            # One machine too few would not have been enough.
            assert brought - last < int(lack.deficit.resources["cpu"]) or not mine


@given(fleets(), histories())
def test_donors_keep_their_margin_and_give_a_tenth_at_most(
    fleet: list[ReceivedReport], history: list[Move]
) -> None:
    moves = planned(fleet, history).moves
    for heard in fleet:
        assert heard.summary is not None
        free = heard.summary.free_by_class
        idle = {row.instance_type: row.idle for row in free}
        slots = {row.instance_type: row.speculative for row in free}
        given_idle = Counter[str]()
        for move in moves:
            if move.donor == heard.shard_id and move.tier is Tier.IDLE:
                given_idle[move.wish.instance_type] += move.count
            if move.donor == heard.shard_id and move.tier is Tier.QUOTA:
                slots[move.wish.instance_type] -= move.count
        assert given_idle.total() <= max(1, sum(idle.values()) // 10)
        assert min(slots.values(), default=0) >= 0
        for arch in ("arm", "amd"):
            there = sum(count for kind, count in idle.items() if kind.endswith(arch))
            gone = sum(count for kind, count in given_idle.items() if kind.endswith(arch))
            fitting = [row for row in free if row.instance_type.endswith(arch) and row.idle]
            if gone and len(fitting) == 1:
                assert there - gone >= max(1, math.ceil(there / 10))


@given(fleets(), histories())
def test_machines_do_not_go_back_and_forth(
    fleet: list[ReceivedReport], history: list[Move]
) -> None:
    moves = planned(fleet, history).moves
    went = {(move.donor, move.recipient) for move in moves}
    assert not any((recipient, donor) in went for donor, recipient in went)
    for move in history:
        is_recent = NOW - move.updated_at < 80 * SECOND or not move.phase.is_over
        if is_recent and move.phase is not MovePhase.ABANDONED:
            assert (move.recipient, move.donor) not in went


@given(fleets(), histories())
def test_moves_are_for_eligible_shortfalls_of_other_shards(
    fleet: list[ReceivedReport], history: list[Move]
) -> None:
    result = planned(fleet, history)
    ages = {
        (heard.shard_id, lack.profile_fingerprint): lack
        for heard in fleet
        for lack in heard.shortfalls
    }
    for move in result.moves:
        lack = ages[move.recipient, move.fingerprint]
        assert move.donor != move.recipient
        assert lack.age_cycles > 5
        assert not lack.topology_constrained
        assert move.tier is not Tier.PREEMPT or lack.age_cycles > 12
    acted_on = {(move.recipient, move.fingerprint) for move in result.moves}
    left = [(one.shard, one.fingerprint) for one in result.suppressed]
    assert len(left) == len(set(left))
    assert not acted_on & set(left)


@given(fleets(), histories())
def test_the_same_reports_give_the_same_plan(
    fleet: list[ReceivedReport], history: list[Move]
) -> None:
    assert planned(fleet, history) == planned(fleet, history)


@given(fleets())
def test_what_was_read_before_changes_nothing(fleet: list[ReceivedReport]) -> None:
    reader, numbers = ReportReader(), itertools.count(1)
    reader.views(fleet[::-1])
    again = plan(
        reader.catalogue, reader.views(fleet), PlanningInput(now=NOW), lambda: f"m-{next(numbers)}"
    )
    assert again == planned(fleet, [])
