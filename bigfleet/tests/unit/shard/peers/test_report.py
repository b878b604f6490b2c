"""What a report says, example by example; the property test counts the hard way."""

from dataclasses import dataclass, replace

import pytest

from bigfleet.model import (
    LABEL_ARCH,
    LABEL_ZONE,
    MachineState,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Taint,
    Toleration,
)
from bigfleet.shard.demand.ingest import ClusterStatement
from bigfleet.shard.peers.donations import MachineFilter, free_machines
from bigfleet.shard.peers.errors import InvalidInstructionError
from bigfleet.shard.peers.report import MOST_CLASSES, Reports, reported_shortfalls, summarise
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Shard, machine, stamp, transfer

S = MachineState


@dataclass(frozen=True)
class Entry:
    profile: Profile
    deficit: dict[str, int]
    min_unit: dict[str, int]
    age_cycles: int = 1
    clusters: tuple[str, ...] = ("c-1",)


def entry(priority: int, age: int, *requirements: Requirement) -> Entry:
    profile = Profile.of(requirements, priority=priority, interruption=PenaltyBucket.DOLLARS_4)
    return Entry(profile, {"cpu": 8_000}, {"cpu": 2_000}, age, ("c-2", "c-1"))


def test_totals_are_of_every_state_and_free_of_two() -> None:
    fleet = [
        machine("m-1"),
        machine("m-2", S.SPECULATIVE, zone="z-b"),
        machine("m-3", S.CONFIGURED, stamp=stamp(), kind="gpu"),
        machine("m-4", stamp=stamp()),
    ]
    summary = summarise(Shard(machines=fleet).book.snapshot(), "s-1", "p:1,q:2")
    assert (summary.total_machines, summary.free_machines) == (4, 3)
    assert dict(summary.per_instance_type_counts) == {"std": 3, "gpu": 1}
    assert dict(summary.per_zone_counts) == {"z-a": 3, "z-b": 1}
    assert summary.provider_address == "p:1,q:2"


def test_what_others_could_be_given_is_unclaimed_and_not_kept_out() -> None:
    fleet = [
        machine("m-1"),
        machine("m-2", labels={"kubernetes.io/hostname": "m-2", "pool": "x"}),
        machine("m-3", stamp=stamp()),
        machine("m-4", S.SPECULATIVE),
        machine("m-5", S.SPECULATIVE),
    ]
    shard = Shard(machines=fleet)
    shard.book.exclude("m-5", True)
    rows = summarise(shard.book.snapshot(), "s-1", "").free_by_class
    assert [(row.idle, row.speculative) for row in rows] == [(1, 1), (1, 0)]
    assert rows[1].labels["pool"] == "x"
    assert "kubernetes.io/hostname" not in rows[1].labels
    assert (rows[0].provider, rows[0].region, rows[0].zone) == ("p", "r", "z-a")
    assert dict(rows[0].allocatable.resources) == {"cpu": "4"}


def test_an_empty_shard_has_an_empty_summary() -> None:
    summary = summarise(Shard().book.snapshot(), "s-1", "")
    assert summary == pb.ShardSummary()


def test_the_largest_classes_are_named_at_most_five_hundred() -> None:
    fleet = [machine(f"m-{n}", kind=f"t-{n:03d}") for n in range(MOST_CLASSES + 20)]
    fleet += [machine(f"n-{n}", kind="t-519") for n in range(3)]
    rows = summarise(Shard(machines=fleet).book.snapshot(), "s-1", "").free_by_class
    assert len(rows) == MOST_CLASSES
    assert (rows[0].instance_type, rows[0].idle) == ("t-519", 4)


def test_announced_slots_are_those_of_all_states_by_provider_and_region() -> None:
    fleet = [machine(f"m-{n}", S.SPECULATIVE, provider="q") for n in range(3)]
    fleet += [machine("m-8", S.SPECULATIVE, region="far"), machine("m-9")]
    totals = summarise(Shard(machines=fleet).book.snapshot(), "s-1", "").quota_totals
    assert [(t.provider, t.region, dict(t.per_shard)) for t in totals] == [
        ("p", "far", {"s-1": 1}),
        ("p", "r", {"s-1": 1}),
        ("q", "r", {"s-1": 3}),
    ]


def nothing(_cluster: str) -> ClusterStatement:
    return ClusterStatement()


def test_a_shortfall_asks_for_the_default_architecture_of_its_clusters() -> None:
    def stated(_cluster: str) -> ClusterStatement:
        return ClusterStatement(arch="amd64")

    (row,) = reported_shortfalls([entry(5, 1)], stated)
    assert [(r.key, list(r.values)) for r in row.requirements if r.key == LABEL_ARCH] == [
        (LABEL_ARCH, ["amd64"])
    ]


def test_a_shortfall_says_what_it_tolerates_where_one_of_its_clusters_states_it() -> None:
    def stated(cluster: str) -> ClusterStatement:
        return ClusterStatement(tolerations=cluster == "c-2")

    profile = Profile.of(tolerations=[Toleration.of("gpu", "Exists")])
    lack = Entry(profile, {"cpu": 8_000}, {"cpu": 2_000}, 7, ("c-1", "c-2"))
    (told,), (untold,) = reported_shortfalls([lack], stated), reported_shortfalls([lack], nothing)
    assert [one.key for one in told.tolerations] == ["gpu"]
    assert (told.tolerations_stated, untold.tolerations_stated) == (True, False)


def test_a_tainted_machine_is_offered_with_its_taints_and_given_to_who_tolerates_them() -> None:
    plain = machine("m-1", S.SPECULATIVE)
    tainted = replace(machine("m-2", S.SPECULATIVE), taints=(Taint.of("gpu"),))
    avoided = replace(
        machine("m-3", S.SPECULATIVE), taints=(Taint.of("gpu", "", "PreferNoSchedule"),)
    )
    fleet = Shard(machines=[plain, tainted, avoided]).book.snapshot()
    offered = summarise(fleet, "s-1", "").free_by_class
    assert sorted([taint.effect for taint in one.taints] for one in offered) == [
        [], ["NoSchedule"], ["PreferNoSchedule"],
    ]  # fmt: skip
    assert free_machines(fleet, MachineFilter(), S.SPECULATIVE) == ["m-1", "m-3"]
    tolerations = capacity.Toleration(key="gpu", operator="Exists")
    stated = pb.ReassignSpeculative(tolerations=[tolerations], tolerations_stated=True)
    unstated = pb.ReassignSpeculative(tolerations=[tolerations])
    for asked, given in ((stated, ["m-1", "m-2", "m-3"]), (unstated, ["m-1", "m-3"])):
        assert free_machines(fleet, MachineFilter.of(asked), S.SPECULATIVE) == given


def test_an_instruction_with_a_toleration_that_cannot_be_is_refused() -> None:
    odd = pb.ReassignSpeculative(
        tolerations=[capacity.Toleration(key="gpu", operator="Maybe")], tolerations_stated=True
    )
    with pytest.raises(InvalidInstructionError, match="'Maybe' is unknown"):
        MachineFilter.of(odd)


def test_shortfalls_come_by_priority_and_age_with_all_they_need() -> None:
    same = Requirement.of(LABEL_ZONE, RequirementOperator.SAME)
    rows = reported_shortfalls([entry(5, 1), entry(9, 2, same), entry(9, 7)], nothing)
    assert [(row.priority, row.age_cycles) for row in rows] == [(9, 7), (9, 2), (5, 1)]
    assert [row.topology_constrained for row in rows] == [False, True, False]
    row = rows[1]
    assert row.requirements[0].key == LABEL_ZONE
    assert dict(row.deficit.resources) == {"cpu": "8"}
    assert dict(row.min_unit.resources) == {"cpu": "2"}
    assert int(row.interruption_penalty_bucket) == PenaltyBucket.DOLLARS_4
    assert list(row.cluster_ids) == ["c-1", "c-2"]
    assert len(row.profile_fingerprint) == 32


def test_at_most_a_hundred_shortfalls_are_reported() -> None:
    rows = reported_shortfalls((entry(n, 1) for n in range(130)), nothing)
    assert len(rows) == 100
    assert rows[-1].priority == 30


async def test_a_report_names_clusters_acks_and_held_transfers() -> None:
    shard = Shard(machines=[machine("m-1")])
    await shard.told(transfer("m/pick", count=1))
    reports = Reports(
        shard_id="s-1",
        epoch=4,
        address="host:7780",
        providers="p:1",
        clock=shard.clock,
        fleet=shard.book.snapshot,
        shortfalls=lambda: [entry(1, 1)],
        clusters=lambda: {"c-2", "c-1"},
        transfers=lambda: shard.ownership.transfers,
    )
    report = reports.build(7, [pb.InstructAck(instruction_id="i-1")])
    assert (report.shard_id, report.shard_epoch, report.shard_address) == ("s-1", 4, "host:7780")
    assert report.timestamp_unix_nanos == shard.clock.now()
    assert report.assignments_revision == 7
    assert list(report.known_clusters) == ["c-1", "c-2"]
    assert len(report.shortfalls) == 1
    assert [ack.instruction_id for ack in report.instruction_acks] == ["i-1"]
    held = report.transfers[0]
    assert (held.move_id, held.role, list(held.machine_ids)) == (
        "m", pb.HeldTransfer.ROLE_DONOR, ["m-1"],
    )  # fmt: skip
