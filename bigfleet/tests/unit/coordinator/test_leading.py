"""Becoming the leader, writing as one, and losing it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from bigfleet.coordinator.errors import NotLeaderError, WriteFailedError
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.leadership.ports import NoRebalancer
from bigfleet.coordinator.state import (
    AssignDomain,
    BindCluster,
    RefusalError,
    RemoveShard,
    SetQuota,
)
from bigfleet.coordinator.store.errors import StoreFullError, StoreUnavailableError
from bigfleet.coordinator.store.interface import Leadership
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinators import Fleet, leading, running, until
from memory_store import MemoryStore, Shared
from sim.loop import virtual_loop


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with leading(Fleet()) as fleet:
        await fleet.report("s-1")
        yield fleet


def applied(fleet: Fleet) -> dict[str, float | None]:
    outcomes = ("success", "error", "fsm_error")
    return {outcome: fleet.value("apply_total", outcome=outcome) for outcome in outcomes}


async def test_a_leader_shows_itself(fleet: Fleet) -> None:
    assert fleet.coordinator.not_ready() == ""
    assert fleet.value("is_leader") == 1
    assert fleet.value("has_leader") == 1
    assert fleet.value("raft_term") == 1
    assert fleet.value("leader_changes_total") == 1
    assert fleet.value("state_entries", table="shards") == 1


async def test_a_follower_names_the_leader_and_takes_over_with_everything() -> None:
    shared = Shared()
    one, two = Fleet(MemoryStore(shared), "c-1"), Fleet(MemoryStore(shared), "c-2")
    async with leading(one), running(two):
        await one.report("s-1", known_clusters=["c"])
        await one.coordinator.apply(AssignDomain("zone", "a", "s-1"))
        await until(lambda: two.value("raft_term") == 1)
        assert two.coordinator.not_ready() == ""
        assert (two.value("is_leader"), two.value("has_leader")) == (0, 1)
        with pytest.raises(NotLeaderError) as refusal:
            await two.report("s-1")
        assert refusal.value.leader == "c-1:7790"

        await shared.depose()
        await until(
            lambda: two.coordinator.election.is_leader or one.coordinator.election.is_leader
        )
        # The winner: the other one knows it, and nothing acknowledged is lost.
        winner, loser = (two, one) if two.coordinator.election.is_leader else (one, two)
        await until(lambda: loser.value("raft_term") == 2)
        answer = await winner.report("s-1", shard_epoch=1, cycle=1)
        assert answer.coordinator_term == 2
        assert [d.topology_value for d in answer.assignments.domains] == ["a"]
        assert list(answer.assignments.clusters) == ["c"]
        assert loser.value("is_leader") == 0
        assert loser.value("shard_report_age_seconds", shard="s-1") is None
        rows = {fleet: fleet.value("state_entries", table="domains") for fleet in (winner, loser)}
        assert rows == {winner: 1, loser: 0}
        with pytest.raises(NotLeaderError):
            loser.coordinator.lead()


async def test_a_replica_that_stops_lets_another_lead() -> None:
    shared = Shared()
    one, two = Fleet(MemoryStore(shared), "c-1"), Fleet(MemoryStore(shared), "c-2")
    async with leading(one):
        life = asyncio.create_task(two.coordinator.run())
        await until(lambda: two.coordinator.not_ready() == "")
    assert one.store.is_closed
    await until(lambda: two.coordinator.election.is_leader)
    life.cancel()
    await asyncio.gather(life, return_exceptions=True)


async def test_while_it_loads_a_replica_does_not_name_itself() -> None:
    fleet = Fleet()
    loading = asyncio.Event()

    async def load_slowly() -> object:
        await loading.wait()
        return await MemoryStore.load(fleet.store)

    fleet.store.load = load_slowly  # type: ignore[method-assign, assignment]
    async with running(fleet):
        await until(lambda: fleet.store.leader() is not None)
        with pytest.raises(NotLeaderError) as refusal:
            fleet.coordinator.lead()
        assert refusal.value.leader == ""
        loading.set()
        await until(lambda: fleet.coordinator.election.is_leader)


async def test_a_lease_that_ran_out_is_noticed_before_any_answer(fleet: Fleet) -> None:
    leader_state = fleet.coordinator.lead()
    object.__setattr__(leader_state.leadership, "confirmed", lambda: False)
    with pytest.raises(NotLeaderError):
        await fleet.report("s-1")


def test_a_store_that_is_away_is_waited_for() -> None:
    async def story() -> tuple[str, bool, float]:
        fleet = Fleet()
        fleet.store.shared.is_away = True
        begun = asyncio.get_running_loop().time()
        async with running(fleet):
            await asyncio.sleep(10)
            why = fleet.coordinator.not_ready()
            fleet.store.shared.is_away = False
            await asyncio.sleep(1.5)
            return why, fleet.coordinator.election.is_leader, begun

    why, leads, _ = virtual_loop(1).run(story())
    assert "no leader is known" in why
    assert leads


def test_a_disk_that_is_full_when_it_campaigns_is_waited_for() -> None:
    async def story() -> bool:
        fleet = Fleet()
        full = [StoreFullError("no room")] * 5
        campaign = fleet.store.campaign

        async def campaign_without_room(address: str) -> Leadership:
            if full:
                raise full.pop()
            return await campaign(address)

        fleet.store.campaign = campaign_without_room  # type: ignore[method-assign]
        async with running(fleet):
            await asyncio.sleep(15)
            return fleet.coordinator.election.is_leader

    assert virtual_loop(1).run(story())


def test_a_store_that_is_away_is_asked_less_and_less_often_and_not_by_all_at_once() -> None:
    async def tries(name: str) -> list[float]:
        fleet, at = Fleet(name=name), list[float]()

        async def away() -> None:
            at.append(asyncio.get_running_loop().time())
            raise StoreUnavailableError("no process answers")

        fleet.store.open = away  # type: ignore[method-assign]
        async with running(fleet):
            await asyncio.sleep(60)
        return [later - earlier for earlier, later in itertools.pairwise(at)]

    one, two = (virtual_loop(1).run(tries(name)) for name in ("c-1", "c-2"))
    for waits in (one, two):
        assert waits[0] <= 0.5
        assert all(2.5 <= wait <= 5.0 for wait in waits[4:])
        assert len(set(waits)) == len(waits)
    assert one != two


async def test_every_write_is_counted_by_how_it_ended(fleet: Fleet) -> None:
    before = applied(fleet)
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    with pytest.raises(RefusalError):
        await fleet.coordinator.apply(AssignDomain("zone", "b", "s-9"))
    fleet.store.before_commit.append(StoreFullError("full"))
    with pytest.raises(WriteFailedError, match="full"):
        await fleet.coordinator.apply(AssignDomain("zone", "b", "s-1"))
    after = applied(fleet)
    assert {key: (after[key] or 0) - (before[key] or 0) for key in after} == {
        "success": 1, "error": 1, "fsm_error": 1
    }  # fmt: skip


async def test_a_write_of_unknown_fate_is_found_out_before_the_next(fleet: Fleet) -> None:
    fleet.store.after_commit.append(StoreUnavailableError("no answer"))
    with pytest.raises(WriteFailedError):
        await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert not fleet.coordinator.lead().state.domains
    await fleet.coordinator.apply(AssignDomain("zone", "b", "s-1"))
    state = fleet.coordinator.lead().state
    assert set(state.domains) == {("zone", "a"), ("zone", "b")}
    domains = (await fleet.report("s-1")).assignments.domains
    assert [one.topology_value for one in domains] == ["a", "b"]


async def test_soft_state_of_a_shard_that_turns_out_to_be_removed_goes_too(fleet: Fleet) -> None:
    await fleet.report("s-2")
    fleet.store.after_commit.append(StoreUnavailableError("no answer"))
    with pytest.raises(WriteFailedError):
        await fleet.coordinator.apply(RemoveShard("s-2"))
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert [one.shard_id for one in fleet.coordinator.lead().reports] == ["s-1"]
    assert fleet.value("shard_report_age_seconds", shard="s-2") is None


async def test_another_clients_write_is_read_and_built_upon(fleet: Fleet) -> None:
    shared = fleet.store.shared
    shared.revision += 1
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert fleet.coordinator.lead().state.domains == {("zone", "a"): "s-1"}


async def test_a_caller_that_goes_away_does_not_stop_a_write(fleet: Fleet) -> None:
    gate = fleet.store.gate = asyncio.Event()
    caller = asyncio.create_task(fleet.coordinator.apply(AssignDomain("zone", "a", "s-1")))
    await until(lambda: len(fleet.coordinator.lead()._writes) == 1)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    gate.set()
    await until(lambda: ("zone", "a") in fleet.coordinator.lead().state.domains)
    assert len(list(fleet.coordinator.lead().instructions)) == 1


def test_a_store_that_does_not_answer_fails_the_write_in_five_seconds() -> None:
    async def story() -> float:
        async with leading(Fleet()) as fleet:
            await fleet.report("s-1")
            fleet.store.gate = asyncio.Event()
            begun = asyncio.get_running_loop().time()
            writes = [
                asyncio.create_task(fleet.coordinator.apply(BindCluster(f"c-{n}", "s-1")))
                for n in range(3)
            ]
            ended = await asyncio.gather(*writes, return_exceptions=True)
            assert all(isinstance(one, WriteFailedError) for one in ended)
            return asyncio.get_running_loop().time() - begun

    assert virtual_loop(1).run(story()) == pytest.approx(5.0, abs=0.1)


async def test_who_is_deposed_learns_it_from_its_write(fleet: Fleet) -> None:
    fleet.store.shared.leadership = None
    with pytest.raises(NotLeaderError):
        await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert applied(fleet)["error"] == 1


async def test_a_quota_is_checked_against_what_all_shards_announce(fleet: Fleet) -> None:
    def said(shard: str, slots: int) -> pb.ShardSummary:
        quota = pb.QuotaAllocation(provider="p", region="eu", per_shard={shard: slots})
        return pb.ShardSummary(quota_totals=[quota])

    set_quota = fleet.coordinator.set_quota
    await fleet.report("s-2", summary=said("s-2", 30))
    # Of s-1 nothing is known yet, so nothing is refused.
    await set_quota("p", "eu", {"s-1": 99})
    await fleet.report("s-1", summary=said("s-1", 10))
    with pytest.raises(RefusalError, match="41 slots are given out and 40 are announced"):
        await set_quota("p", "eu", {"s-1": 11, "s-2": 30})
    await set_quota("p", "eu", {"s-1": 10, "s-2": 30})
    await set_quota("p", "elsewhere", {"s-1": 1_000})
    assert fleet.coordinator.lead().state.quotas["p", "eu"] == {"s-1": 10, "s-2": 30}
    await fleet.coordinator.apply(SetQuota("p", "eu", {}))
    assert ("p", "eu") not in fleet.coordinator.lead().state.quotas


class Failing(NoRebalancer):
    """Fails once, then goes on."""

    def __init__(self) -> None:
        self.begun = 0

    async def run(self, leader_state: LeaderState) -> None:
        self.begun += 1
        if self.begun == 1:
            raise ZeroDivisionError
        await super().run(leader_state)


def test_a_duty_that_fails_is_taken_up_again() -> None:
    async def story() -> int:
        rebalancer = Failing()
        async with leading(Fleet(rebalancer=rebalancer)) as fleet:
            await asyncio.sleep(31)
            assert fleet.coordinator.election.is_leader
        return rebalancer.begun

    assert virtual_loop(1).run(story()) == 2
