"""What runs by itself goes on, whatever a substrate raises."""

from collections.abc import Sequence

from bigfleet_providerkit import Host, InvalidRequest, PriceKey, State
from bigfleet_providerkit.memory.substrate import MemorySubstrate
from kitworld import World, world


class Changed(MemorySubstrate):
    """A cloud whose answers have changed their shape: the code that reads them stumbles."""

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        raise KeyError("instances")

    async def prices(self) -> dict[PriceKey, float]:
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
