"""Orders carried out against a provider behind a port, with a journal on a real disk."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import Machine, MachineState
from bigfleet.observe.process import Threads
from bigfleet.shard.act.backoff import StockOut
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.state.disk import LocalDisk
from bigfleet.shard.state.journal import Journal
from bigfleet_lab.fake import FakeProvider
from executing import World, until
from executing_values import PROFILE, order, stamp

K = ActionKind
S = MachineState
OWNED = '[{"instance_type": "fake-standard-4", "zone": "hall-1", "capacity_type": "bare_metal", '
OWNED += '"count": 2, "resources": {"cpu": "4", "memory": "16Gi"}}]'


@contextlib.asynccontextmanager
async def running(
    fake: FakeProvider, folder: Path, *, epoch: int = 7
) -> AsyncIterator[tuple[World, Journal]]:
    """An executor that has listed the fake once."""
    offload = Threads("disk", 1)
    journal = Journal(LocalDisk(folder), offload)
    entries = journal.load()
    flushing = asyncio.ensure_future(journal.run())
    async with World(journal=journal, site=fake.site, epoch=epoch) as world:
        world.executor.restore(entries)
        await listed(world)
        yield world, journal
    flushing.cancel()
    await asyncio.wait([flushing])
    offload.close()


async def listed(world: World) -> list[Machine]:
    """What a List does to the book."""
    (client,) = list(world.providers)
    asked = world.clock.monotonic()
    machines = (await client.list()).machines
    for machine in machines:
        world.book.take(machine, asked)
    return list(machines)


async def reaches(world: World, machine_id: str, state: MachineState) -> None:
    """List until a machine is where it should be."""
    async with asyncio.timeout(20):
        while world.state(machine_id) is not state:
            await listed(world)
            await asyncio.sleep(0.01)


def at(fake: FakeProvider, kind: ActionKind, machine_id: str, **fields: object) -> Order:
    return order(kind, machine_id, provider=fake.site.name, **fields)  # type: ignore[arg-type]


async def test_a_machine_through_its_life(tmp_path: Path) -> None:
    async with (
        await FakeProvider.start(listen=True, seed_count=4, slow_ms=1) as fake,
        running(fake, tmp_path) as (world, journal),
    ):
        name = (await listed(world))[0].id
        world.hand_over(at(fake, K.PROVISION, name))
        await reaches(world, name, S.IDLE)
        assert journal.knows(name)
        assert world.known(name).stamp == stamp()
        world.hand_over(at(fake, K.BOOTSTRAP, name))
        await reaches(world, name, S.CONFIGURED)
        bound = world.known(name)
        assert bound.cluster == "c-1"
        assert bound.stamp is not None
        assert bound.stamp.fingerprint == PROFILE.fingerprint
        world.hand_over(at(fake, K.RECLAIM, name))
        await until(lambda: bool(world.operators.instructions), 10)
        ((cluster, instruction),) = world.operators.instructions
        world.executor.reclaim_acknowledged(cluster, instruction.id, True)
        await reaches(world, name, S.IDLE)
        await until(lambda: not journal.knows(name), 10)
        world.hand_over(at(fake, K.DELETE, name, cluster=""))
        await reaches(world, name, S.SPECULATIVE)
        assert {outcome for _, outcome in world.outcomes()} == {"success"}


async def test_a_stock_out_is_seen_when_the_machine_fails(tmp_path: Path) -> None:
    async with (
        await FakeProvider.start(listen=True, seed_count=4, slow_ms=1) as fake,
        running(fake, tmp_path) as (world, _),
    ):
        slot = (await listed(world))[0]
        fake.stock_out(slot.instance_type, slot.zone)
        world.hand_over(at(fake, K.PROVISION, slot.id))
        async with asyncio.timeout(20):
            while not world.metrics.counts["create out_of_capacity"]:
                await listed(world)
                await asyncio.sleep(0.01)
        (event,) = world.executor.failures.take_events()
        assert isinstance(event, StockOut)
        assert event.offering == (slot.provider, slot.instance_type, slot.zone, slot.capacity_type)


async def test_the_older_of_two_processes_is_fenced_and_stops(tmp_path: Path) -> None:
    async with (
        await FakeProvider.start(listen=True, seed_count=4, slow_ms=1) as fake,
        running(fake, tmp_path, epoch=8) as (newer, _),
    ):
        name = (await listed(newer))[0].id
        newer.hand_over(at(fake, K.PROVISION, name))
        await reaches(newer, name, S.IDLE)
        (tmp_path / "old").mkdir()
        async with running(fake, tmp_path / "old", epoch=7) as (older, _):
            older.hand_over(at(fake, K.BOOTSTRAP, name))
            await older.settled()
            assert older.outcomes() == {("Bootstrap", "fenced"): 1}
            assert older.state(name) is S.IDLE
            assert fake.site.name in older.executor.not_ready
        newer.hand_over(at(fake, K.BOOTSTRAP, name))
        await reaches(newer, name, S.CONFIGURED)


async def test_owned_hardware_is_not_given_back_twice(tmp_path: Path) -> None:
    async with (
        await FakeProvider.start(listen=True, offerings=OWNED, slow_ms=1) as fake,
        running(fake, tmp_path) as (world, _),
    ):
        name = next(m.id for m in await listed(world))
        if world.state(name) is S.SPECULATIVE:
            world.hand_over(at(fake, K.PROVISION, name))
            await reaches(world, name, S.IDLE)
        world.hand_over(at(fake, K.DELETE, name, cluster=""))
        await world.settled()
        assert world.outcomes()["Delete", "provider_error"] == 1
        assert world.state(name) is S.IDLE
        assert world.hand_over(at(fake, K.DELETE, name, cluster="")).deduped == 1


async def test_a_provider_that_went_away_costs_a_try_and_nothing_else(tmp_path: Path) -> None:
    fake = await FakeProvider.start(listen=True, seed_count=4, slow_ms=1)
    async with running(fake, tmp_path) as (world, _):
        name = (await listed(world))[0].id
        await fake.stop()
        world.hand_over(at(fake, K.PROVISION, name))
        await world.settled()
        assert world.outcomes() == {("Provision", "provider_error"): 1}
        assert world.state(name) is S.SPECULATIVE
        assert world.executor.failures.waiting() == {name}
        assert world.refreshed == [name]


@pytest.mark.parametrize("machines", [200])
async def test_many_at_once_over_one_connection(tmp_path: Path, machines: int) -> None:
    async with (
        await FakeProvider.start(listen=True, seed_count=machines, slow_ms=1) as fake,
        running(fake, tmp_path) as (world, _),
    ):
        names = [m.id for m in await listed(world)]
        world.hand_over(*(at(fake, K.PROVISION, name) for name in names))
        for name in names:
            await reaches(world, name, S.IDLE)
        world.hand_over(*(at(fake, K.BOOTSTRAP, name) for name in names))
        await world.settled()
        assert world.outcomes() == {
            ("Provision", "success"): len(names),
            ("Bootstrap", "success"): len(names),
        }
