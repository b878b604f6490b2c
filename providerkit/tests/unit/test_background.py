"""What runs by itself goes on, whatever a substrate raises."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from bigfleet_providerkit import (
    CapacityType,
    Gone,
    Host,
    InvalidRequest,
    Notice,
    NoticeKind,
    Power,
    Retryable,
    SourceData,
    State,
)
from bigfleet_providerkit.memory.substrate import MemorySubstrate
from kitworld import World, world


class Changed(MemorySubstrate):
    """A cloud whose answers have changed their shape: the code that reads them stumbles."""

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        raise KeyError("instances")

    async def source_data(self) -> SourceData:
        raise KeyError("hourly")


def change_shape(w: World) -> None:
    w.substrate.__class__ = Changed


def change_back(w: World) -> None:
    w.substrate.__class__ = MemorySubstrate


async def test_a_bug_in_a_listing_is_a_failed_listing_and_the_next_one_counts() -> None:
    async with world(reconcile_interval=10, failed_cleanup_after=0) as w:
        machine = await w.idle()
        change_shape(w)
        await w.advance(30)
        assert w.metric("reconcile_total", outcome="error") == 3
        assert w.metric("panics_total") == 3
        change_back(w)
        await w.substrate.lose((await w.shard.get(machine)).host.ref)
        lost = await w.reach(machine, State.FAILED, limit=60)
        assert lost.last_error.startswith("HostLost:")


async def test_a_loop_that_met_a_bug_of_ours_begins_again() -> None:
    async with world(reconcile_interval=10) as w:
        reconciler = w.running.backend.reconciler
        run, times = reconciler.run, 0

        async def stumble_once() -> bool:
            nonlocal times
            times += 1
            if times == 1:
                raise ZeroDivisionError("oops")
            return await run()

        reconciler.run = stumble_once  # type: ignore[method-assign]
        await w.advance(60)
        assert times > 3
        assert w.metric("panics_total") == 1


async def test_a_price_list_that_changed_its_shape_keeps_the_last_prices() -> None:
    async with world() as w:
        machine = await w.fresh()
        change_shape(w)
        assert not await w.running.refresh_prices()
        assert w.metric("price_refresh_total", outcome="error") == 1
        assert (await w.shard.get(machine)).price_per_hour == 0.4


async def test_a_slot_whose_cleanup_met_a_bug_stays_due() -> None:
    async with world() as w:
        machine = await w.configured()
        w.substrate.fail_next("drain", InvalidRequest("stuck"))
        await w.shard.drain(machine)
        await w.reach(machine, State.FAILED)
        change_shape(w)
        await w.advance(601)
        still = await w.shard.get(machine)
        assert still.last_error == "Unavailable: cleanup failed: KeyError: 'instances'"
        change_back(w)
        await w.reach(machine, State.SPECULATIVE)


async def fail(w: World, machine: str) -> str:
    """The machine's host, after its drain has failed."""
    w.substrate.fail_next("drain", InvalidRequest("stuck"))
    await w.shard.drain(machine)
    return (await w.reach(machine, State.FAILED)).host.ref


class Strict(MemorySubstrate):
    """A cloud that answers 404 when a host is ended twice, and never ends the stuck one."""

    stuck = ""

    async def terminate(self, host: Host) -> None:
        if host.ref not in self.hosts:
            raise Gone("404: no such host")
        if host.ref == self.stuck:
            await self._kit.clock.sleep(1e9)
        await super().terminate(host)


async def test_a_lost_host_that_the_cloud_no_longer_knows_does_not_keep_its_slot() -> None:
    async with world(reconcile_interval=10) as w:
        machine = await w.idle()
        w.substrate.__class__ = Strict
        await w.substrate.lose((await w.shard.get(machine)).host.ref)
        await w.reach(machine, State.FAILED, limit=60)
        await w.reach(machine, State.SPECULATIVE, limit=700)
        assert w.metric("heal_failures_total") == 0


async def test_a_spot_host_that_was_taken_away_is_also_removed() -> None:
    async with world(reconcile_interval=10) as w:
        machine = await w.idle(CapacityType.SPOT)
        ref = (await w.shard.get(machine)).host.ref
        await w.substrate.stop(ref, Power.PREEMPTED)
        await w.reach(machine, State.FAILED, limit=60)
        await w.reach(machine, State.SPECULATIVE, limit=700)
        assert ref not in w.substrate.hosts


async def test_a_host_that_never_ends_keeps_no_other_slot_waiting() -> None:
    async with world() as w:
        stuck, other = await w.configured(), await w.configured()
        w.substrate.__class__ = Strict
        w.substrate.stuck = await fail(w, stuck)  # type: ignore[attr-defined]
        await fail(w, other)
        await w.reach(other, State.SPECULATIVE, limit=700)
        await w.advance(400)
        still = await w.shard.get(stuck)
        assert still.last_error == "Unavailable: cleanup failed: no end within 5m0s"
        late = await w.configured()
        await fail(w, late)
        await w.reach(late, State.SPECULATIVE, limit=1500)


async def test_a_mutation_does_not_wait_for_a_tag_that_is_put_right() -> None:
    async with world() as w:
        machine = await w.configured("c")
        w.substrate.hosts[(await w.shard.get(machine)).host.ref].cluster = "elsewhere"
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def hang(host: Host, binding: object) -> None:
            await never

        w.substrate.set_binding = hang  # type: ignore[method-assign]
        looking = asyncio.get_running_loop().create_task(w.running.reconcile())
        await w.clock.settle()
        async with asyncio.timeout(5):
            await w.shard.drain(machine)
        never.set_result(None)
        await looking


async def test_notices_that_are_not_heard_are_no_bug_and_are_asked_for_again() -> None:
    async with world() as w:
        calls = 0

        class Deaf(MemorySubstrate):
            async def interruptions(self) -> AsyncIterator[Notice]:
                nonlocal calls
                calls += 1
                yield Notice("i-unknown", NoticeKind.REBALANCE, 0.5, 0.0)
                raise Retryable("the queue does not answer any more")

        w.substrate.__class__ = Deaf
        loops = w.running.backend.loops
        listening = asyncio.get_running_loop().create_task(loops._notices())
        await w.advance(60)
        listening.cancel()
        assert calls > 5
        assert w.metric("panics_total") == 0
