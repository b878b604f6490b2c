"""What hosts leave behind is removed after the grace, a little at a time, and never in use."""

from collections.abc import Sequence

from bigfleet_providerkit import Litter, MemorySubstrate, Retryable
from kitworld import World, world

GRACE = 600.0


class Littered(MemorySubstrate):
    """A cloud with volumes."""

    volumes: dict[str, Litter]
    broken = False

    async def leftovers(self) -> Sequence[Litter]:
        if self.broken:
            raise Retryable("volumes cannot be listed")
        return list(self.volumes.values())

    async def discard(self, litter: Litter) -> None:
        self.volumes.pop(litter.ref, None)


def litter(w: World, *volumes: Litter) -> Littered:
    w.substrate.__class__ = Littered
    assert isinstance(w.substrate, Littered)
    w.substrate.volumes = {volume.ref: volume for volume in volumes}
    return w.substrate


async def test_a_volume_without_a_host_goes_after_the_grace() -> None:
    async with world(orphan_grace=GRACE) as w:
        cloud = litter(w, Litter("v-1", "volume", w.clock.now()))
        await w.running.reconcile()
        assert w.metric("orphan_hosts") == 1
        assert "v-1" in cloud.volumes
        await w.advance(GRACE)
        await w.running.reconcile()
        assert cloud.volumes == {}


async def test_what_a_host_of_a_slot_or_a_running_create_uses_stays() -> None:
    async with world(orphan_grace=GRACE, reconcile_interval=0) as w:
        idle = await w.idle()
        w.substrate.delays["create"] = 10 * GRACE
        creating = await w.fresh()
        running = (await w.shard.create(creating)).operation_id
        record = w.running.backend.ledger.inventory.get(idle)
        assert record is not None
        of_host = record.create_op
        volumes = (
            Litter("v-host", "volume", 1.0, of_host),
            Litter("v-new", "volume", 1.0, running),
            Litter("v-old", "volume", 1.0, "aaaaaaaaaa-1"),
        )
        cloud = litter(w, *volumes)
        await w.running.reconcile()
        assert set(cloud.volumes) == {"v-host", "v-new"}


async def test_one_pass_removes_few_and_a_person_confirms_the_rest() -> None:
    async with world(orphan_grace=GRACE, reconcile_interval=0) as w:
        cloud = litter(w, *(Litter(f"v-{n}", "volume", 1.0) for n in range(5)))
        await w.running.reconcile()
        assert len(cloud.volumes) == 4
        assert len(w.running.backend.reconciler.litter.held) == 4
        await w.running.reconcile()
        assert len(cloud.volumes) == 4
        assert len(await w.running.backend.reconciler.sweep()) == 4
        assert cloud.volumes == {}


async def test_a_listing_of_leftovers_that_fails_removes_nothing_and_hosts_are_still_judged() -> (
    None
):
    async with world(orphan_grace=0, orphans="terminate", reconcile_interval=0) as w:
        cloud = litter(w, Litter("v-1", "volume", 1.0))
        cloud.broken = True
        assert await w.running.reconcile()
        assert "v-1" in cloud.volumes


async def test_with_orphans_report_leftovers_are_only_counted() -> None:
    async with world(orphans="report", orphan_grace=0, reconcile_interval=0) as w:
        cloud = litter(w, Litter("v-1", "volume", 1.0))
        await w.running.reconcile()
        await w.running.reconcile()
        assert "v-1" in cloud.volumes
        assert w.metric("orphan_hosts") == 1
