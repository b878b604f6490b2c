"""What becomes of a report: registered, discarded, heard, answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from bigfleet.coordinator.errors import NotLeaderError, WriteFailedError
from bigfleet.coordinator.server import listings
from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    BindCluster,
    ProviderEntry,
    RegisterProvider,
    RemoveShard,
    SetQuota,
)
from bigfleet.coordinator.store.errors import StoreUnavailableError
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinators import Fleet, leading, until
from memory_store import MemoryStore


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with leading(Fleet()) as fleet:
        yield fleet


def registered(fleet: Fleet) -> dict[str, str]:
    shards = listings.shards(fleet.coordinator.lead()).shards
    return {one.shard_id: one.address for one in shards}


async def test_the_first_report_registers(fleet: Fleet) -> None:
    answer = await fleet.report("s-1")
    assert answer.acknowledged
    assert answer.coordinator_term == 1
    assert registered(fleet) == {"s-1": "s-1:7780"}


async def test_a_new_address_registers_again_and_keeps_everything(fleet: Fleet) -> None:
    await fleet.report("s-1", known_clusters=["c-1"])
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    before = listings.shards(fleet.coordinator.lead()).shards[0].registered_at_unix_ns
    fleet.clock.advance(5)
    await fleet.report("s-1", shard_address="elsewhere:1")
    entry = listings.shards(fleet.coordinator.lead()).shards[0]
    assert entry.address == "elsewhere:1"
    assert entry.registered_at_unix_ns == before + 5 * 10**9
    state = fleet.coordinator.lead().state
    assert state.domains == {("zone", "a"): "s-1"}
    assert state.clusters["c-1"].shard == "s-1"


async def test_an_empty_address_changes_nothing(fleet: Fleet) -> None:
    await fleet.report("s-1")
    await fleet.report("s-1", shard_address="")
    assert registered(fleet) == {"s-1": "s-1:7780"}


@pytest.mark.parametrize(
    "address", [":7780", "0.0.0.0:7780", "[::]:7780", "s-1", "s-1:0", "x" * 9_999]
)
async def test_an_address_that_cannot_be_dialled_is_counted_and_never_stored(
    fleet: Fleet, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        assert (await fleet.report("s-1", shard_address=address)).acknowledged
    assert registered(fleet) == {"s-1": ""}
    assert fleet.value("addresses_refused_total") == 3
    (warned,) = [r for r in caplog.records if "cannot be dialled" in r.getMessage()]
    assert len(str(warned.__dict__["address"])) < 100
    await fleet.report("s-1", shard_address="here:1")
    assert registered(fleet) == {"s-1": "here:1"}
    await fleet.report("s-1", shard_address=address)
    assert registered(fleet) == {"s-1": ""}


async def test_a_stored_address_that_cannot_be_dialled_is_cleared_by_the_next_leader() -> None:
    fleet = Fleet()
    async with leading(fleet):
        await fleet.report("s-1", known_clusters=["c-1"])
        await fleet.report("s-2")
        # As a version before this one stored it.
        await fleet.coordinator.apply(AddShard("s-1", ":7780"))
        assert registered(fleet) == {"s-1": ":7780", "s-2": "s-2:7780"}
    again = Fleet(MemoryStore(fleet.store.shared))
    async with leading(again):
        await until(lambda: registered(again)["s-1"] == "")
        assert registered(again) == {"s-1": "", "s-2": "s-2:7780"}
        assert again.coordinator.lead().state.clusters["c-1"].shard == "s-1"


async def test_without_registration_nothing_of_a_report_is_taken(fleet: Fleet) -> None:
    fleet.store.before_commit.append(StoreUnavailableError("away"))
    report = fleet.next_report("s-1", summary=pb.ShardSummary(total_machines=3))
    with pytest.raises(WriteFailedError):
        await fleet.coordinator.report(report)
    assert not list(fleet.coordinator.lead().reports)
    # The same report is as good as new.
    assert (await fleet.coordinator.report(report)).to_proto().acknowledged


@pytest.mark.parametrize(
    ("epoch", "cycle", "taken"),
    [(7, 5, False), (7, 4, False), (7, 6, True), (8, 1, True), (6, 9, False)],
)
async def test_only_a_newer_report_counts(
    fleet: Fleet, epoch: int, cycle: int, taken: bool
) -> None:
    await fleet.report(shard_epoch=7, cycle=5, summary=pb.ShardSummary(total_machines=1))
    fleet.clock.advance(10)
    answer = await fleet.report(
        shard_epoch=epoch, cycle=cycle, summary=pb.ShardSummary(total_machines=2)
    )
    assert answer.acknowledged is taken
    assert answer.coordinator_term == 1
    heard = fleet.coordinator.lead().reports.get("s-1")
    assert heard is not None
    assert heard.summary is not None
    assert heard.summary.total_machines == (2 if taken else 1)
    assert heard.heartbeat_at == fleet.clock.now() - (0 if taken else 10 * 10**9)


async def test_a_removed_shard_may_come_back_in_an_earlier_life(fleet: Fleet) -> None:
    await fleet.report(shard_epoch=7)
    await fleet.coordinator.apply(RemoveShard("s-1"))
    assert (await fleet.report(shard_epoch=1, cycle=1)).acknowledged


async def test_an_empty_list_clears_shortfalls_and_an_absent_summary_stays(fleet: Fleet) -> None:
    lack = pb.Shortfall(
        priority=3,
        requirements=[capacity_pb2.NodeSelectorRequirement(key="gpu")],
        deficit=provider_pb2.Resources(resources={"cpu": "1"}),
    )
    await fleet.report(shortfalls=[lack], summary=pb.ShardSummary(total_machines=4))
    first = fleet.clock.now()
    seen = listings.reports(fleet.coordinator.lead(), "").reports[0]
    assert seen.shortfalls[0].deficit.resources["cpu"] == "1"
    assert not seen.shortfalls[0].requirements
    heard = fleet.coordinator.lead().reports.get("s-1")
    assert heard is not None
    assert heard.shortfalls[0].requirements[0].key == "gpu"

    fleet.clock.advance(10)
    await fleet.report()
    seen = listings.reports(fleet.coordinator.lead(), "s-1").reports[0]
    assert not seen.shortfalls
    assert seen.summary.total_machines == 4
    assert seen.received_at_unix_ns == first
    assert not listings.reports(fleet.coordinator.lead(), "s-9").reports


async def test_first_contact_binds_and_is_permanent(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    await fleet.report("s-1", known_clusters=["c-1", "c-1", ""])
    with caplog.at_level(logging.WARNING):
        await fleet.report("s-2", known_clusters=["c-1", "c-2"])
        await fleet.report("s-2", known_clusters=["c-1", "c-2"])
    said = [one for one in caplog.records if "bound to another shard" in one.message]
    assert len(said) == 1
    clusters = listings.clusters(fleet.coordinator.lead()).clusters
    assert [(one.cluster_id, one.shard_id) for one in clusters] == [("c-1", "s-1"), ("c-2", "s-2")]
    await fleet.coordinator.apply(BindCluster("c-1", "s-2"))
    assert (await fleet.report("s-2")).assignments.clusters == ["c-1", "c-2"]


HOSTILE = ["x" * 5_000_000, "a\0b", "a\r\nforged", "../../etc/passwd", ""]


async def test_cluster_ids_that_break_the_rules_do_not_hold_up_the_others(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert (await fleet.report("s-1", known_clusters=[*HOSTILE, "shop"])).acknowledged
    assert set(fleet.coordinator.lead().state.clusters) == {"shop"}
    told = [record for record in caplog.records if "cluster ids are not bound" in record.message]
    assert [vars(record)["clusters"] for record in told] == [len(HOSTILE)]
    assert len(vars(told[0])["example"]) < 200


async def test_a_binding_that_failed_is_tried_again_with_the_next_report(fleet: Fleet) -> None:
    await fleet.report("s-1")
    fleet.store.before_commit.append(StoreUnavailableError("away"))
    assert (await fleet.report("s-1", known_clusters=["c-1"])).acknowledged
    assert not fleet.coordinator.lead().state.clusters
    await fleet.report("s-1", known_clusters=["c-1"])
    assert fleet.coordinator.lead().state.clusters["c-1"].shard == "s-1"


async def test_a_fresh_shard_gets_everything_that_concerns_it(fleet: Fleet) -> None:
    await fleet.report("s-1", known_clusters=["c-1"])
    await fleet.report("s-2", known_clusters=["c-2"])
    for command in (
        AssignDomain("zone", "a", "s-1"),
        AssignDomain("zone", "b", "s-2"),
        SetQuota("p", "eu", {"s-2": 5}),
        RegisterProvider(ProviderEntry("p", "p:9001", "eu")),
        RegisterProvider(ProviderEntry("q", "q:9001", "us", ("s-1",))),
        RegisterProvider(ProviderEntry("r", "r:9001", "us", ("s-7",))),
    ):
        await fleet.coordinator.apply(command)
    one = (await fleet.report("s-1")).assignments
    two = (await fleet.report("s-2")).assignments
    assert [(d.topology_key, d.topology_value) for d in one.domains] == [("zone", "a")]
    assert [(d.topology_value, d.shard_id) for d in one.foreign_domains] == [("b", "s-2")]
    assert [(d.topology_value, d.shard_id) for d in two.foreign_domains] == [("a", "s-1")]
    assert list(one.clusters) == ["c-1"]
    assert {q.provider: dict(q.per_shard) for q in one.quotas} == {"p": {"s-1": 0}}
    assert {q.provider: dict(q.per_shard) for q in two.quotas} == {"p": {"s-2": 5}}
    assert [p.name for p in one.providers] == ["p", "q"]
    assert list(one.providers[1].shards) == ["s-1"]
    assert [p.name for p in two.providers] == ["p"]
    assert (one.is_default, two.is_default) == (True, False)
    assert one.revision == two.revision == fleet.coordinator.lead().state.revision


async def test_assignments_are_sent_when_the_shard_holds_another_revision(fleet: Fleet) -> None:
    held = (await fleet.report()).assignments.revision
    assert held > 0
    assert not (await fleet.report(assignments_revision=held)).HasField("assignments")
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    newer = await fleet.report(assignments_revision=held)
    assert newer.assignments.revision > held
    # Held from before a restore.
    assert (await fleet.report(assignments_revision=2**60)).HasField("assignments")


async def test_a_domain_that_changed_its_shard_is_told_to_all(fleet: Fleet) -> None:
    for shard in ("s-1", "s-2", "s-3"):
        await fleet.report(shard)
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert (await fleet.report("s-3")).assignments.foreign_domains[0].shard_id == "s-1"
    await fleet.coordinator.apply(RemoveShard("s-1"))
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-2"))
    assert [d.shard_id for d in (await fleet.report("s-3")).assignments.foreign_domains] == ["s-2"]
    assert not (await fleet.report("s-2")).assignments.foreign_domains
    assert (await fleet.report("s-2")).assignments.is_default


async def test_removing_a_shard_takes_everything_of_it(fleet: Fleet) -> None:
    await fleet.report("s-1", known_clusters=["c-1"], summary=pb.ShardSummary(total_machines=1))
    await fleet.report("s-2")
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    await fleet.coordinator.apply(SetQuota("p", "", {"s-1": 1, "s-2": 2}))
    await fleet.coordinator.apply(RemoveShard("s-1"))
    leader_state = fleet.coordinator.lead()
    assert list(leader_state.state.shards) == ["s-2"]
    assert not leader_state.state.clusters
    assert not leader_state.state.domains
    assert leader_state.state.quotas == {("p", ""): {"s-2": 2}}
    assert [one.shard_id for one in leader_state.reports] == ["s-2"]
    assert not list(leader_state.instructions)
    assert fleet.value("shard_report_age_seconds", shard="s-1") is None
    assert fleet.value("shard_report_age_seconds", shard="s-2") == 0


async def test_the_age_of_a_report_counts_from_the_last_one_taken(fleet: Fleet) -> None:
    await fleet.report()
    fleet.clock.advance(7)
    assert fleet.value("shard_report_age_seconds", shard="s-1") == 7
    await fleet.report()
    assert fleet.value("shard_report_age_seconds", shard="s-1") == 0


async def test_a_former_leader_answers_no_request(fleet: Fleet) -> None:
    await fleet.report()
    gate = fleet.store.gate = asyncio.Event()
    pending = asyncio.create_task(fleet.report("s-2"))
    await until(lambda: len(fleet.coordinator.lead()._writes) == 1)
    await fleet.store.shared.depose()
    gate.set()
    with pytest.raises(NotLeaderError):
        await pending
