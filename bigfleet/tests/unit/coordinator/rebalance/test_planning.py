"""Which moves are begun: one test for each rule."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bigfleet.coordinator.rebalance import RebalancePlan, plan
from bigfleet.coordinator.rebalance.moves.advance import MoveInstruction, MoveTask
from bigfleet.coordinator.rebalance.moves.instruction_texts import payload_of
from bigfleet.coordinator.rebalance.planning.planner import none_eligible
from bigfleet.coordinator.rebalance.planning.report_reader import PlanningInput, ReportReader
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import MachineShape, Move, MovePhase, ProviderEntry, Tier
from bigfleet.model import MachineState
from bigfleet.shard.peers.report import summarise
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from coordinating import Shard as Reporting
from coordinating import machine, stamp

SECOND = 1_000_000_000
NOW = 1_000_000 * SECOND
Operator = capacity.NodeSelectorRequirement


def free(
    idle: int = 0,
    slots: int = 0,
    kind: str = "std",
    zone: str = "z",
    cpu: str = "4",
    labels: Mapping[str, str] | None = None,
    region: str = "r",
) -> pb.FreeClass:
    return pb.FreeClass(
        instance_type=kind, zone=zone, provider="p", region=region, idle=idle, speculative=slots,
        allocatable=provider.Resources(resources={"cpu": cpu, "memory": "16Gi"}), labels=labels,
    )  # fmt: skip


def lack(
    cpu: str = "8",
    *,
    priority: int = 10,
    age: int = 6,
    bucket: int = 3,
    name: str = "f",
    constrained: bool = False,
    requirements: tuple[capacity.NodeSelectorRequirement, ...] = (),
    unit: str = "1",
) -> pb.Shortfall:
    return pb.Shortfall(
        requirements=requirements, deficit=provider.Resources(resources={"cpu": cpu}),
        priority=priority, age_cycles=age, topology_constrained=constrained,
        interruption_penalty_bucket=capacity.PenaltyBucket.ValueType(bucket),
        profile_fingerprint=name, min_unit=provider.Resources(resources={"cpu": unit}),
    )  # fmt: skip


def shard(
    name: str,
    *said: pb.FreeClass | pb.Shortfall,
    types: Mapping[str, int] | None = None,
    slots: int = 0,
) -> ReceivedReport:
    """A report; `slots` are the machines of the pool in all states."""
    summary = pb.ShardSummary(
        per_instance_type_counts=types,
        free_by_class=[one for one in said if isinstance(one, pb.FreeClass)],
        quota_totals=[pb.QuotaAllocation(provider="p", region="r", per_shard={name: slots})],
    )
    lacks = tuple(one for one in said if isinstance(one, pb.Shortfall))
    return ReceivedReport(name, 1, 1, NOW, 0.0, summary.SerializeToString(), NOW, lacks)


def planned(*reports: ReceivedReport, known: PlanningInput | None = None) -> RebalancePlan:
    reader, numbers = ReportReader(), itertools.count(1)
    views = reader.views(reports)
    return plan(
        reader.catalogue, views, known or PlanningInput(now=NOW), lambda: f"m-{next(numbers)}"
    )  # fmt: skip


def gifts(result: RebalancePlan) -> list[tuple[str, str, str, int]]:
    return [(move.tier.value, move.donor, move.recipient, move.count) for move in result.moves]


def reasons(result: RebalancePlan) -> list[str]:
    return [one.reason for one in result.suppressed]


def under_way(**changes: object) -> Move:
    move = Move(
        "m-0", Tier.IDLE, "a", "b", 1, MachineShape("std", "z", "p", "r"),
        created_at=NOW - SECOND, updated_at=NOW - SECOND, fingerprint="f",
    )  # fmt: skip
    return replace(move, **changes)  # type: ignore[arg-type]


# -- which shortfalls --------------------------------------------------------------------------


def test_a_shortfall_of_five_cycles_is_too_young_and_one_of_six_is_met() -> None:
    assert reasons(planned(shard("a", free(50)), shard("b", lack(age=5)))) == ["too_young"]
    assert gifts(planned(shard("a", free(50)), shard("b", lack(age=6)))) == [("idle", "a", "b", 2)]


@pytest.mark.parametrize(
    "same",
    [
        lack(constrained=True),
        lack(requirements=(Operator(key="rack", operator=Operator.OPERATOR_SAME),)),
    ],
    ids=["said", "seen"],
)
def test_what_must_be_together_never_crosses_shards(same: pb.Shortfall) -> None:
    row = free(50, labels={"rack": "1"})
    assert reasons(planned(shard("a", row), shard("b", same))) == ["topology"]


def test_higher_priority_comes_first_then_the_older_one() -> None:
    donor = shard("a", free(10))
    result = planned(donor, shard("b", lack(priority=1)), shard("c", lack(priority=2)))
    assert gifts(result) == [("idle", "a", "c", 1)]
    result = planned(donor, shard("b", lack(age=7)), shard("c", lack(age=9)))
    assert gifts(result) == [("idle", "a", "c", 1)]


def test_a_shortfall_that_cannot_be_read_is_left_to_its_shard() -> None:
    odd = lack()
    odd.min_unit.resources["cpu"] = "many"
    assert planned(shard("a", free(50)), shard("b", odd)) == RebalancePlan()


def test_a_round_without_eligible_shortfalls_says_why() -> None:
    report = shard("b", lack(age=2), lack(age=9, constrained=True))
    assert reasons(none_eligible([report])) == ["too_young", "topology"]


# -- idle --------------------------------------------------------------------------------------


def test_never_more_machines_than_the_deficit_needs() -> None:
    result = planned(shard("a", free(1_000)), shard("b", lack(cpu="9")))
    assert gifts(result) == [("idle", "a", "b", 3)]


def test_a_donor_keeps_a_tenth_of_its_matching_idle_machines_and_at_least_one() -> None:
    assert reasons(planned(shard("a", free(1)), shard("b", lack()))) == ["donor_margin"]
    assert gifts(planned(shard("a", free(2)), shard("b", lack()))) == [("idle", "a", "b", 1)]


def test_a_round_takes_at_most_a_tenth_of_a_donors_idle_machines() -> None:
    donor = shard("a", free(40), free(60, kind="big", cpu="1", labels={"x": "1"}))
    wanted = lack(cpu="1000", requirements=(Operator(key="x", operator=Operator.OPERATOR_EXISTS),))
    assert gifts(planned(donor, shard("b", wanted))) == [("idle", "a", "b", 10)]
    twice = planned(donor, shard("b", wanted), shard("c", wanted))
    assert sum(move.count for move in twice.moves) == 10


def test_what_a_round_took_half_a_minute_ago_counts_for_the_next_one() -> None:
    recent = under_way(count=4, phase=MovePhase.DONE, recipient="d", fingerprint="other")
    known = PlanningInput([recent], now=NOW)
    result = planned(shard("a", free(50)), shard("b", lack(cpu="400")), known=known)
    assert gifts(result) == [("idle", "a", "b", 1)]
    known = PlanningInput([replace(recent, created_at=NOW - 31 * SECOND)], now=NOW)
    result = planned(shard("a", free(50)), shard("b", lack(cpu="400")), known=known)
    assert gifts(result) == [("idle", "a", "b", 5)]


def test_a_donors_own_unmet_demand_comes_first_however_young() -> None:
    donor = shard("a", free(20), lack(cpu="72", age=1, name="own"))
    assert gifts(planned(donor, shard("b", lack(cpu="40")))) == []
    donor = shard("a", free(20), lack(cpu="68", age=1, name="own"))
    assert gifts(planned(donor, shard("b", lack(cpu="40")))) == [("idle", "a", "b", 1)]


def test_machines_must_fit_requirements_and_unit() -> None:
    ssd = Operator(key="disk", operator=Operator.OPERATOR_IN, values=["ssd"])
    rows = (free(50), free(50, kind="ssd", labels={"disk": "ssd"}), free(50, kind="xl", cpu="32"))
    result = planned(shard("a", *rows), shard("b", lack(requirements=(ssd,))))
    assert [move.wish.instance_type for move in result.moves] == ["ssd"]
    result = planned(shard("a", *rows), shard("b", lack(cpu="8", unit="5")))
    assert [move.wish.instance_type for move in result.moves] == ["xl"]
    assert reasons(planned(shard("a", *rows), shard("b", lack(unit="33")))) == ["no_donor"]


def test_a_move_names_type_zone_provider_region_and_what_is_asked_for() -> None:
    ssd = Operator(key="disk", operator=Operator.OPERATOR_IN, values=["ssd"])
    row = free(50, labels={"disk": "ssd"})
    known = PlanningInput(now=NOW, escalated={("b", "f"): 7})
    result = planned(shard("a", row), shard("b", lack(requirements=(ssd,))), known=known)
    (move,) = result.moves
    assert move.wish == MachineShape(
        "std", "z", "p", "r", (("disk", Operator.OPERATOR_IN, ("ssd",)),), (("cpu", "1"),), 10, 3
    )
    assert (move.id, move.fingerprint, move.escalated_at) == ("m-1", "f", 7)


def test_several_donors_are_taken_together_the_richest_first() -> None:
    result = planned(shard("a", free(20)), shard("b", lack(cpu="20")), shard("c", free(30)))
    assert gifts(result) == [("idle", "c", "b", 3), ("idle", "a", "b", 2)]


def test_what_moves_bring_already_is_not_asked_for_again() -> None:
    donor, recipient = shard("a", free(50)), shard("b", lack(cpu="8"))
    for phase in (
        MovePhase.PLANNED,
        MovePhase.DONOR_RELEASED,
        MovePhase.RECIPIENT_ADOPTED,
        MovePhase.DONE,
    ):
        known = PlanningInput([under_way(count=2, phase=phase)], now=NOW)
        assert planned(donor, recipient, known=known) == RebalancePlan(), phase
    known = PlanningInput([under_way(count=1)], now=NOW)
    assert gifts(planned(donor, recipient, known=known)) == [("idle", "a", "b", 1)]
    late = under_way(count=2, phase=MovePhase.DONE, updated_at=NOW - 41 * SECOND)
    known = PlanningInput([late], now=NOW)
    assert gifts(planned(donor, recipient, known=known)) == [("idle", "a", "b", 2)]


def test_machines_a_planned_move_will_take_are_not_given_twice() -> None:
    promised = under_way(count=8, recipient="c", created_at=NOW - 60 * SECOND)
    known = PlanningInput([promised], now=NOW)
    result = planned(shard("a", free(10)), shard("b", lack(cpu="400")), known=known)
    assert gifts(result) == [("idle", "a", "b", 1)]
    known = PlanningInput([replace(promised, count=9)], now=NOW)
    assert gifts(planned(shard("a", free(10)), shard("b", lack()), known=known)) == []


# -- no ping-pong ------------------------------------------------------------------------------


def test_nothing_goes_back_between_two_shards_for_eight_report_cycles() -> None:
    other_way = under_way(donor="b", recipient="a", phase=MovePhase.DONE, fingerprint="x")
    for age, expected in ((79, []), (81, [("idle", "a", "b", 2)])):
        known = PlanningInput([replace(other_way, updated_at=NOW - age * SECOND)], now=NOW)
        result = planned(shard("a", free(50)), shard("b", lack()), known=known)
        assert gifts(result) == expected
        assert reasons(result) == (["cooldown"] if not expected else [])


def test_two_shards_do_not_swap_machines_in_one_round() -> None:
    arm = Operator(key="arch", operator=Operator.OPERATOR_IN, values=["arm"])
    amd = Operator(key="arch", operator=Operator.OPERATOR_IN, values=["amd"])
    one = shard("a", free(50, labels={"arch": "arm"}), lack(requirements=(amd,)))
    other = shard("b", free(50, kind="x", labels={"arch": "amd"}), lack(requirements=(arm,)))
    assert len(planned(one, other).moves) == 1


def test_a_donor_that_had_nothing_is_not_asked_again_for_a_while() -> None:
    refused = under_way(phase=MovePhase.ABANDONED)
    reports = shard("a", free(60)), shard("b", lack()), shard("c", free(50))
    known = PlanningInput([refused], now=NOW)
    assert gifts(planned(*reports, known=known)) == [("idle", "c", "b", 2)]
    known = PlanningInput([replace(refused, updated_at=NOW - 81 * SECOND)], now=NOW)
    assert gifts(planned(*reports, known=known)) == [("idle", "a", "b", 2)]


# -- quota -------------------------------------------------------------------------------------


def test_slots_are_taken_where_idle_machines_do_not_suffice() -> None:
    result = planned(shard("a", free(20)), shard("b", lack(cpu="40")), shard("c", free(slots=30)))
    assert gifts(result) == [("idle", "a", "b", 2), ("quota", "c", "b", 8)]


@pytest.mark.parametrize(("quota", "count"), [(69, 0), (70, 0), (75, 5), (200, 10)])
def test_slots_go_only_with_quota_the_donor_does_not_use(quota: int, count: int) -> None:
    donor = shard("a", free(slots=30), slots=100)
    known = PlanningInput(quotas={("p", "r"): {"a": quota}}, now=NOW)
    result = planned(donor, shard("b", lack(cpu="40")), known=known)
    assert sum(move.count for move in result.moves) == count
    assert all(move.tier is Tier.QUOTA for move in result.moves)


def test_slots_of_several_zones_share_the_quota_of_their_pool() -> None:
    donor = shard("a", free(slots=15, zone="z-1"), free(slots=15, zone="z-2"), slots=100)
    known = PlanningInput(quotas={("p", "r"): {"a": 75}}, now=NOW)
    result = planned(donor, shard("b", lack(cpu="40")), known=known)
    assert gifts(result) == [("quota", "a", "b", 5)]


def test_slots_of_other_pools_are_not_used_and_those_that_cannot_go_are() -> None:
    known = PlanningInput(quotas={("p", "r"): {"a": 72}}, now=NOW)
    elsewhere = free(slots=1, zone="far", region="r2")
    donor = shard("a", free(slots=30), elsewhere, slots=100)
    assert sum(m.count for m in planned(donor, shard("b", lack()), known=known).moves) == 2
    donor = shard("a", free(slots=28), slots=100)
    assert reasons(planned(donor, shard("b", lack()), known=known)) == ["donor_margin"]


def test_quota_of_slots_on_their_way_is_not_promised_twice() -> None:
    known = PlanningInput(
        [under_way(tier=Tier.QUOTA, count=4, recipient="c", phase=MovePhase.DONOR_RELEASED)],
        quotas={("p", "r"): {"a": 75}},
        now=NOW,
    )
    donor = shard("a", free(slots=30), slots=100)
    result = planned(donor, shard("b", lack(cpu="40")), known=known)
    assert gifts(result) == [("quota", "a", "b", 1)]


def test_a_recipient_that_does_not_use_the_provider_gets_nothing_of_it() -> None:
    known = PlanningInput(providers={"p": ProviderEntry("p", "p:1", shards=("a",))}, now=NOW)
    result = planned(shard("a", free(50)), shard("b", lack()), known=known)
    assert reasons(result) == ["no_donor"]


# -- preempt -----------------------------------------------------------------------------------

BUSY = {"std": 40}


def test_machines_in_use_are_asked_for_above_twelve_cycles_one_move_each() -> None:
    donor = shard("a", free(1), types=BUSY)
    assert gifts(planned(donor, shard("b", lack(age=12)))) == []
    assert gifts(planned(donor, shard("b", lack(age=13)))) == [("preempt", "a", "b", 1)] * 2


def test_nothing_is_drained_while_anybody_has_something_to_give() -> None:
    donor = shard("a", types=BUSY)
    old = lack(cpu="400", age=13)
    capped = planned(donor, shard("b", old), shard("c", free(30)))
    assert {move.tier for move in capped.moves} == {Tier.IDLE}
    other_way = under_way(donor="b", recipient="c", phase=MovePhase.DONE, fingerprint="x")
    barred = planned(
        donor, shard("b", old), shard("c", free(30)), known=PlanningInput([other_way], now=NOW)
    )
    assert reasons(barred) == ["cooldown"]
    deaf = planned(
        shard("a", free(1), types=BUSY),
        shard("b", old),
        known=PlanningInput(now=NOW, is_whole=False),
    )
    assert not deaf.moves, "a person who was not heard may have something"


def test_a_donor_with_demand_as_important_is_left_alone() -> None:
    own = lack(cpu="1", priority=10, age=1, name="own")
    donor = shard("a", free(1), own, types=BUSY)
    assert gifts(planned(donor, shard("b", lack(age=13)))) == []
    donor = shard("a", free(1), lack(cpu="1", priority=9, age=1, name="own"), types=BUSY)
    assert gifts(planned(donor, shard("b", lack(age=13)))) == [("preempt", "a", "b", 1)] * 2


def test_of_machines_of_unknown_size_one_is_asked_for_at_a_time() -> None:
    result = planned(shard("a", types=BUSY), shard("b", lack(cpu="400", age=13)))
    assert gifts(result) == [("preempt", "a", "b", 1)]
    assert result.moves[0].wish.instance_type == ""
    known = PlanningInput(
        [under_way(tier=Tier.PREEMPT, wish=MachineShape(min_unit=(("cpu", "1"),)))], now=NOW
    )
    result = planned(shard("a", types=BUSY), shard("b", lack(cpu="400", age=13)), known=known)
    assert result.moves == ()


# -- bounds ------------------------------------------------------------------------------------


def test_a_round_begins_a_bounded_number_of_moves() -> None:
    rows = [free(slots=1, kind=f"t{n}") for n in range(500)]
    result = planned(shard("a", *rows), shard("b", *rows), shard("c", lack(cpu="100000")))
    assert len(result.moves) == 500
    known = PlanningInput([under_way(id=f"x{n}", fingerprint="x") for n in range(499)], now=NOW)
    result = planned(shard("a", *rows), shard("c", lack(cpu="100000")), known=known)
    assert len(result.moves) == 1


@pytest.mark.parametrize(("quota", "count"), [(8, 0), (10, 0), (11, 1), (50, 2)])
def test_a_slice_in_use_stays_with_its_shard_as_shards_report_it(quota: int, count: int) -> None:
    serving = [machine(f"m-{n}", MachineState.CONFIGURED, stamp=stamp()) for n in range(10)]
    unused = [machine(f"n-{n}", MachineState.SPECULATIVE) for n in range(5)]
    fleet = Reporting(machines=serving + unused).book.snapshot()
    donor = ReceivedReport(
        "a", 1, 1, NOW, 0.0, summarise(fleet, "a", "").SerializeToString(), NOW, ()
    )
    known = PlanningInput(quotas={("p", "r"): {"a": quota}}, now=NOW)
    result = planned(donor, shard("b", lack(cpu="8")), known=known)
    assert sum(move.count for move in result.moves) == count


# -- taints ----------------------------------------------------------------------------------


def tainted(idle: int) -> pb.FreeClass:
    offered = free(idle=idle)
    offered.taints.add(key="gpu", value="present", effect="NoSchedule")
    return offered


def tolerant(*, stated: bool = True) -> pb.Shortfall:
    wanted = lack("4", name="t")
    wanted.tolerations.add(key="gpu", operator="Exists")
    wanted.tolerations_stated = stated
    return wanted


def test_a_tainted_machine_is_not_taken_for_demand_that_does_not_tolerate_it() -> None:
    donor = shard("a", tainted(idle=20))
    stated = lack("4")
    stated.tolerations_stated = True
    for wanted in (lack("4"), stated, tolerant(stated=False)):
        result = planned(donor, shard("b", wanted))
        assert not result.moves
        assert [one.reason for one in result.suppressed] == ["no_donor"]


def test_a_tainted_machine_goes_to_demand_that_tolerates_it_and_the_donor_knows() -> None:
    result = planned(shard("a", tainted(idle=20)), shard("b", tolerant()))
    assert gifts(result) == [("idle", "a", "b", 1)]
    (move,) = result.moves
    assert move.wish.is_tolerations_stated
    told = payload_of(move, MoveInstruction("a", MoveTask.PICK))
    assert isinstance(told, pb.TransferOwnership)
    assert told.tolerations_stated
    assert [(one.key, one.operator) for one in told.tolerations] == [("gpu", "Exists")]


def test_plain_machines_serve_demand_of_both_kinds() -> None:
    donor = shard("a", free(idle=20))
    for wanted in (lack("4"), tolerant(), tolerant(stated=False)):
        assert gifts(planned(donor, shard("b", wanted))) == [("idle", "a", "b", 1)]
