"""The client and the fake over a real connection: codes, deadlines, fences, large answers."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from bigfleet.model import MachineState
from bigfleet.provider import (
    FencedError,
    MachineNotFoundError,
    NotSupportedError,
    ProviderClient,
    ProviderError,
    Providers,
    ProviderSite,
)
from bigfleet.wire.fencing import FencingStamps
from bigfleet_lab.fake import FakeProvider

OWNED = '[{"instance_type": "fake-standard-4", "zone": "hall-1", "capacity_type": "bare_metal", '
OWNED += '"count": 2, "resources": {"cpu": "4", "memory": "16Gi"}}]'


@contextlib.asynccontextmanager
async def served(
    *, epoch: int = 2, **options: object
) -> AsyncIterator[tuple[FakeProvider, ProviderClient]]:
    """A fake with a port and a shard's client of it."""
    async with await FakeProvider.start(listen=True, **options) as fake:  # type: ignore[arg-type]
        client = ProviderClient.dial(fake.site, FencingStamps("shard-a", epoch))
        yield fake, client
        await client.close()


async def until(client: ProviderClient, machine: str, state: MachineState) -> None:
    async with asyncio.timeout(20):
        while (await client.get(machine)).state is not state:  # noqa: ASYNC110 - there is no watch
            await asyncio.sleep(0.01)


async def code_of(call: Awaitable[object]) -> str:
    with pytest.raises(ProviderError) as raised:
        await call
    return raised.value.code.name


async def test_one_machine_through_its_life() -> None:
    async with served(seed_count=6) as (_, client):
        machine = (await client.list()).machines[0].id
        ack = await client.create(machine)
        assert ack.machine is not None
        assert ack.machine.state is MachineState.CREATING
        assert (await client.create(machine)).operation_id == ack.operation_id
        await until(client, machine, MachineState.IDLE)
        metadata = {"bigfleet.lucy.sh/assigned-priority": "7", "nul": "\0", "empty": ""}
        await client.configure(machine, "cluster-a", b"\0join", metadata)
        await until(client, machine, MachineState.CONFIGURED)
        bound = await client.get(machine)
        assert bound.stamp is not None
        assert (bound.cluster, bound.stamp.priority) == ("cluster-a", 7)
        await client.drain(machine, 0)
        await until(client, machine, MachineState.IDLE)
        await client.delete(machine)
        await until(client, machine, MachineState.SPECULATIVE)


async def test_every_refusal_has_its_code() -> None:
    async with served(seed_count=6) as (_, client):
        machine = (await client.list()).machines[0].id
        assert await code_of(client.create("")) == "INVALID_ARGUMENT"
        assert await code_of(client.get("")) == "INVALID_ARGUMENT"
        assert await code_of(client.drain(machine, -1)) == "INVALID_ARGUMENT"
        assert await code_of(client.list(max_results=-1)) == "INVALID_ARGUMENT"
        for call in (client.get("unknown"), client.create("unknown"), client.delete("unknown")):
            with pytest.raises(MachineNotFoundError):
                await call
        assert await code_of(client.drain(machine, 0)) == "INTERNAL"
        await client.create(machine)
        await until(client, machine, MachineState.IDLE)
        large = {"key": "x" * (9 * 1024 * 1024)}
        codes = {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
        assert await code_of(client.configure(machine, "c", b"", large)) in codes
        assert await code_of(client.configure(machine, "c", b"x" * 5_000_000, {})) in codes
        assert (await client.get(machine)).state is MachineState.IDLE


async def test_owned_hardware_cannot_be_given_back() -> None:
    async with await FakeProvider.start(listen=True, offerings=OWNED) as fake:
        assert not fake.running.settings.delete_offered
        client = ProviderClient.dial(fake.site, FencingStamps("shard-a", 1))
        machine = (await client.list()).machines[0]
        assert machine.price_per_hour == 0
        with pytest.raises(NotSupportedError):
            await client.delete(machine.id)
        await client.close()


async def test_a_shard_of_the_past_is_fenced_and_changes_nothing() -> None:
    async with served(epoch=2, seed_count=6) as (fake, client):
        past = ProviderClient.dial(fake.site, FencingStamps("shard-a", 1))
        machine = (await client.list()).machines[0].id
        await client.create(machine)
        await until(client, machine, MachineState.IDLE)
        with pytest.raises(FencedError):
            await past.configure(machine, "c", b"", {})
        assert (await past.get(machine)).state is MachineState.IDLE
        other = ProviderClient.dial(fake.site, FencingStamps("shard-b", 1))
        await other.configure(machine, "c", b"", {})
        await past.close()
        await other.close()


async def test_a_provider_that_does_not_answer_meets_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        site = ProviderSite("silent", f"{host}:{port}")
        client = ProviderClient.dial(site, FencingStamps("s", 1))
        began = time.monotonic()
        assert await code_of(client.list(seconds=0.3)) == "DEADLINE_EXCEEDED"
        assert time.monotonic() - began < 5
        await client.close()


async def test_a_provider_that_is_not_there_is_unavailable() -> None:
    async with served(seed_count=1) as (fake, _):
        address = fake.site.address
    client = ProviderClient.dial(ProviderSite("gone", address), FencingStamps("s", 1))
    assert await code_of(client.list()) == "UNAVAILABLE"
    await client.close()


async def test_closing_ends_calls_under_way_without_cancelling_their_callers() -> None:
    async with served(seed_count=1) as (fake, _):
        client = ProviderClient.dial(fake.site, FencingStamps("s", 1))
        await client.list()
        locks = fake.running.backend.ledger.locks
        machine = (await client.list()).machines[0].id
        await locks.acquire(machine)
        call = asyncio.create_task(client.create(machine))
        await asyncio.sleep(0)
        await client.list()
        await client.close()
        assert await code_of(call) == "CANCELLED"
        assert await code_of(client.list()) == "CANCELLED"
        locks.release(machine)


async def test_a_list_may_be_larger_than_the_librarys_own_limit() -> None:
    async with served(seed_count=30_000) as (_, client):
        listing = await client.list()
        assert len(listing.machines) == 30_000
        assert listing.refused == ()
        again = await client.list(since=listing.revision)
        assert again.machines == ()


async def test_several_providers_are_spoken_to_by_name() -> None:
    stamps = FencingStamps("shard-a", 1)
    providers = Providers(lambda site: ProviderClient.dial(site, stamps))
    async with (
        await FakeProvider.start(listen=True, seed_count=2, provider="north") as north,
        await FakeProvider.start(listen=True, seed_count=3, provider="south") as south,
    ):
        await providers.use([north.site, south.site])
        counts = {client.name: len((await client.list()).machines) for client in providers}
        assert counts == {"north": 2, "south": 3}
        await providers.close()


async def test_with_a_state_file_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    first = await FakeProvider.start(listen=True, seed_count=4, state=state)
    client = ProviderClient.dial(first.site, FencingStamps("shard-a", 1))
    machine = (await client.list()).machines[0].id
    ack = await client.create(machine)
    await client.close()
    await first.crash()
    async with served(seed_count=4, state=state) as (_, later):
        await until(later, machine, MachineState.IDLE)
        assert (await later.create(machine)).operation_id == ack.operation_id
        past = ProviderClient.dial(later.site, FencingStamps("shard-a", 1))
        with pytest.raises(FencedError):
            await past.delete(machine)
        await past.close()
