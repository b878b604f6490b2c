"""Drains that a person asked for: they happen, or the caller learns why not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bigfleet.model import Machine
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.shard.peers.errors import MoveError
from bigfleet.shard.peers.moves import Moves
from bigfleet.shard.peers.promises import PROMISE_SECONDS
from bigfleet.shard.server.shard import Shard
from bigfleet.shard.server.status import Facade
from bigfleet.shard.state.done_instructions import DoneInstructions
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_lab.simcluster.behaviour import Behaviour, Span
from whole.living import Setting, Whole, cluster, live, provider
from whole.several import EACH, starving, until_helped, until_planned

EVICTED_IN = 40.0
SLOW = Behaviour(rollup_seconds=10.0, evict_seconds=Span(EVICTED_IN, EVICTED_IN))
WANTED = 4


def setting(spare: int = 3) -> Setting:
    """A cluster whose pods take longer to go than several cycles, and machines to spare."""
    return Setting([provider("p1", WANTED + spare)], [cluster(replicas=WANTED, behaviour=SLOW)])


async def met(whole: Whole) -> None:
    await whole.until(lambda: whole.bound() == WANTED, 300.0, f"{WANTED} bound machines")


async def one_of(whole: Whole) -> tuple[Facade, Machine]:
    """A machine that serves, and no rule minds that it goes."""
    await met(whole)
    whole.world.monitor.excuse("c1", whole.loop.time())
    machine = whole.shard.book.get(min(whole.shard.book.bound("c1")))
    assert machine is not None
    return Facade(whole.shard), machine


def is_leaving(shard: Shard, machine_id: str) -> bool:
    machine = shard.book.get(machine_id)
    return machine is not None and machine.leaving is not None


def decided(whole: Whole, machine_id: str) -> list[str]:
    decisions, _ = whole.shard.executor.decisions.since(0)
    return [one.kind for one in decisions if one.machine_id == machine_id]


async def gone(whole: Whole, machine_id: str) -> None:
    free = whole.provider.slots[machine_id]
    await whole.until(lambda: not free.cluster, EVICTED_IN + 60.0, "the drain")


def moves_of(whole: Whole) -> Moves:
    """What a coordinator's instructions would come to."""
    shard, world = whole.shard, whole.shard.world
    shard.moves = Moves(
        "s1", shard.book, shard._fleet, shard.ownership,
        DoneInstructions(world.disk, world.offload),
        shard._preempt, world.clock, shard.metrics.machines_transferred, shard.unheard,
    )  # fmt: skip
    return shard.moves


DRAIN_TWO = pb.CrossShardDrain(count=2, preemptor_priority=1_000_000)


@pytest.mark.parametrize("spare", [3, 0])
def test_a_machine_that_a_person_drains_goes_though_its_need_wants_it(spare: int) -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        await facade.drain_machine(machine.id)
        await asyncio.sleep(EVICTED_IN - 10.0)
        assert is_leaving(whole.shard, machine.id)
        assert whole.bound() == WANTED + (spare > 0), "another one serves before it is gone"
        await gone(whole, machine.id)
        assert "Keep" not in decided(whole, machine.id)
        await asyncio.sleep(60.0)
        assert whole.bound() == WANTED
        assert (machine.id in whole.shard.book.bound("c1")) == (spare == 0)

    live(setting(spare), story)


def test_it_goes_although_the_shard_is_restarted_meanwhile() -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        await facade.drain_machine(machine.id)
        await asyncio.sleep(2.0)
        await whole.restart()
        await gone(whole, machine.id)
        assert "Keep" not in decided(whole, machine.id)
        await met(whole)

    live(setting(), story)


def test_asking_twice_is_asking_once() -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        await facade.drain_machine(machine.id)
        await asyncio.sleep(2.0)
        await facade.drain_machine(machine.id)
        await gone(whole, machine.id)
        assert decided(whole, machine.id).count("Reclaim") == 1

    live(setting(), story)


def test_a_machine_that_leaves_by_decision_is_asked_for_by_excluding_it() -> None:
    async def story(whole: Whole) -> None:
        facade, _ = await one_of(whole)
        whole.scale(WANTED - 1)
        book = whole.shard.book
        await whole.until(lambda: any(is_leaving(whole.shard, m) for m in book.bound("c1")), 60.0)
        (leaving,) = (m for m in book.bound("c1") if is_leaving(whole.shard, m))
        with pytest.raises(DrainRefusedError, match=r"already draining.*exclude the machine"):
            await facade.drain_machine(leaving)
        await facade.exclude_machine(leaving, True)
        await facade.drain_machine(leaving)

    live(setting(), story)


def test_while_paused_no_cluster_is_told_that_a_machine_is_drained() -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        await facade.pause("incident")
        with pytest.raises(NotActingError, match=r"paused \(incident\).*bigfleetctl resume"):
            await facade.drain_machine(machine.id)
        assert not is_leaving(whole.shard, machine.id)
        await facade.resume()
        await facade.drain_machine(machine.id)
        await gone(whole, machine.id)

    live(setting(), story)


def test_nor_in_a_dry_run_or_behind_a_fence() -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        rails = whole.shard.rails
        rails.settings = replace(rails.settings, dry_run=True)
        with pytest.raises(NotActingError, match="without --dry-run"):
            await facade.drain_machine(machine.id)
        rails.settings = replace(rails.settings, dry_run=False)
        whole.shard.executor._admission.fenced.add("p1")
        with pytest.raises(NotActingError, match="restart this one"):
            await facade.drain_machine(machine.id)
        assert not is_leaving(whole.shard, machine.id)

    live(setting(), story)


def test_what_cannot_be_drained_now_is_said_with_why() -> None:
    async def story(whole: Whole) -> None:
        facade, machine = await one_of(whole)
        shard = whole.shard
        shard.book.mark_busy(machine.id)
        with pytest.raises(DrainRefusedError, match="something else is being done"):
            await facade.drain_machine(machine.id)
        shard.book.free(machine.id)
        shard.executor.failures.action_failed(machine.id)
        with pytest.raises(DrainRefusedError, match="left alone for a while"):
            await facade.drain_machine(machine.id)
        idle = next(slot.id for slot in whole.provider.slots.values() if not slot.cluster)
        with pytest.raises(DrainRefusedError, match="is Idle, not Configured"):
            await facade.drain_machine(idle)
        with pytest.raises(DrainRefusedError, match="no machine 'unknown'"):
            await facade.drain_machine("unknown")

    live(setting(), story)


def test_a_paused_shard_promises_nothing_to_another() -> None:
    async def story(whole: Whole) -> None:
        facade, _ = await one_of(whole)
        await facade.pause("incident")
        with pytest.raises(MoveError, match=r"paused \(incident\)"):
            await moves_of(whole).drain("m/drain", DRAIN_TWO)
        assert facade.state().rails == ["paused: incident"]
        await facade.resume()
        await asyncio.sleep(60.0)
        assert whole.bound() == WANTED

    live(setting(), story)


def test_what_is_promised_to_another_shard_is_seen_and_ends_with_no_coordinator_there() -> None:
    async def story(whole: Whole) -> None:
        facade, _ = await one_of(whole)
        done = await moves_of(whole).drain("m/drain", DRAIN_TWO)
        kept = f"drained for another shard and kept for it: {', '.join(sorted(done.machine_ids))}"
        for machine_id in done.machine_ids:
            await gone(whole, machine_id)
        await whole.until(lambda: whole.bound() == WANTED - 1, 60.0, "the one that was spare")
        assert facade.state().rails == [kept]
        await asyncio.sleep(PROMISE_SECONDS)
        await met(whole)
        assert facade.state().rails == []

    live(setting(spare=1), story)


def test_a_donor_that_is_restarted_drains_what_it_promised_and_gives_it() -> None:
    async def story(whole: Whole) -> None:
        await until_planned(whole)
        donor = whole.world.hosts["s1"]

        def promised() -> set[str]:
            moves = whole.shard_of("s1").moves if whole.is_started else None
            return set() if moves is None else set(moves.promises)

        await whole.until(lambda: bool(promised()), 60.0, "a promise")
        before = promised()
        donor.life.process.crash()
        await whole.until(lambda: promised() == before, 60.0, "the same promise")
        assert all(is_leaving(whole.shard_of("s1"), machine) for machine in before)
        await until_helped(whole)
        assert before <= set(whole.shard_of("s2").book.bound("c2"))
        assert whole.bound("c1") == 2 * EACH - 2

    slow = starving("preempt")
    clusters = [replace(one, behaviour=SLOW) for one in slow.clusters]
    live(replace(slow, clusters=clusters), story)
