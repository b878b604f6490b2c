"""The fake on virtual time: asynchronous, and disturbed on command."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from bigfleet.model import CapacityType, Machine, MachineState
from bigfleet.provider import FencedError, MachineNotFoundError, ProviderClient, ProviderError
from bigfleet.wire.fencing import FencingStamps
from bigfleet_lab.fake import FakeOptions, FakeProvider
from bigfleet_lab.fake.spec import TYPE, ZONES
from bigfleet_providerkit import OutOfCapacity, Runtime, VirtualClock

HOUR = 3600.0


class World:
    """A fake on a clock of its own, and the shard that calls it."""

    def __init__(self, fake: FakeProvider, clock: VirtualClock) -> None:
        self.fake = fake
        self.clock = clock
        self.client: ProviderClient = fake.client(FencingStamps("shard-a", 1))

    async def slot(self, kind: CapacityType = CapacityType.ON_DEMAND) -> Machine:
        listing = await self.client.list(states=[MachineState.SPECULATIVE])
        return next(m for m in listing.machines if m.capacity_type is kind)

    async def state(self, machine_id: str) -> MachineState:
        return (await self.client.get(machine_id)).state

    async def idle(self, kind: CapacityType = CapacityType.ON_DEMAND) -> str:
        machine = await self.slot(kind)
        await self.client.create(machine.id)
        await self.clock.advance(1)
        assert await self.state(machine.id) is MachineState.IDLE
        return machine.id


@contextlib.asynccontextmanager
async def world(**options: object) -> AsyncIterator[World]:
    runtime = Runtime.virtual(seed=7)
    assert isinstance(runtime.clock, VirtualClock)
    started = FakeProvider.start(runtime=runtime, seed_count=12, **options)  # type: ignore[arg-type]
    async with await started as fake:
        yield World(fake, runtime.clock)


async def test_an_answer_comes_before_the_work_is_done() -> None:
    async with world(delays={"create": "2s"}) as w:
        machine = await w.slot()
        ack = await w.client.create(machine.id)
        assert ack.machine is not None
        assert ack.machine.state is MachineState.CREATING
        await w.clock.advance(1.9)
        assert await w.state(machine.id) is MachineState.CREATING
        await w.clock.advance(0.2)
        assert await w.state(machine.id) is MachineState.IDLE


async def test_by_default_it_is_asynchronous_too() -> None:
    async with world() as w:
        machine = await w.slot()
        await w.client.create(machine.id)
        await w.clock.settle()
        assert await w.state(machine.id) is MachineState.CREATING


async def test_one_machine_through_its_life() -> None:
    async with world() as w:
        machine = await w.idle()
        await w.client.configure(machine, "cluster-a", b"join", {"key": "value"})
        await w.clock.advance(1)
        bound = await w.client.get(machine)
        assert (bound.state, bound.cluster) == (MachineState.CONFIGURED, "cluster-a")
        await w.client.drain(machine, 0)
        await w.clock.advance(1)
        assert await w.state(machine) is MachineState.IDLE
        await w.client.delete(machine)
        await w.clock.advance(1)
        assert await w.state(machine) is MachineState.SPECULATIVE


async def test_what_is_sold_out_fails_until_it_is_restocked() -> None:
    async with world() as w:
        machine = await w.slot()
        w.fake.stock_out(machine.instance_type, machine.zone)
        await w.client.create(machine.id)
        await w.clock.advance(1)
        failed = await w.client.get(machine.id)
        assert failed.last_error.startswith("OutOfCapacity: ")
        w.fake.restock(machine.instance_type, machine.zone)
        await w.clock.advance(60)
        await w.client.create(machine.id)
        await w.clock.advance(1)
        assert await w.state(machine.id) is MachineState.IDLE


async def test_stock_may_be_out_from_the_start() -> None:
    async with world(stock_outs=f"{TYPE}@{ZONES[0]},{TYPE}@{ZONES[1]}") as w:
        machine = await w.slot()
        await w.client.create(machine.id)
        await w.clock.advance(1)
        assert await w.state(machine.id) is MachineState.FAILED


async def test_a_lost_host_is_seen() -> None:
    async with world() as w:
        machine = await w.idle()
        await w.fake.lose(machine)
        lost = await w.client.get(machine)
        assert lost.state is MachineState.FAILED
        assert lost.last_error.startswith("HostLost: ")
        with pytest.raises(LookupError, match="has no host"):
            await w.fake.lose((await w.slot()).id)


async def test_an_announced_end_is_seen_in_the_forecast() -> None:
    async with world() as w:
        machine = await w.idle(CapacityType.SPOT)
        assert (await w.client.get(machine)).interruption_probability < 1
        w.fake.announce_end(machine, 120)
        await w.clock.advance(1)
        assert (await w.client.get(machine)).interruption_probability == 1


async def test_spot_hosts_are_lost_at_the_rate_asked_for_and_no_others() -> None:
    async with world(losses={"spot": 60.0}, reconcile_interval=60) as w:
        spot, steady = await w.idle(CapacityType.SPOT), await w.idle()
        await w.clock.advance(HOUR / 3)
        assert (await w.client.get(spot)).state is not MachineState.IDLE
        assert await w.state(steady) is MachineState.IDLE


async def test_prices_come_from_options_and_change_on_command() -> None:
    async with world(slot_prices={"spot": 0.05}) as w:
        spot, on_demand = await w.slot(CapacityType.SPOT), await w.slot()
        assert (spot.price_per_hour, on_demand.price_per_hour) == (0.05, 0.38)
        await w.fake.set_price(TYPE, CapacityType.SPOT, 0.2)
        assert (await w.client.get(spot.id)).price_per_hour == 0.2


async def test_failures_and_delays_on_command() -> None:
    async with world() as w:
        machine = await w.slot()
        w.fake.fail_next("create", OutOfCapacity("none left, on command"))
        w.fake.delay("create", 10)
        await w.client.create(machine.id)
        await w.clock.advance(1)
        assert await w.state(machine.id) is MachineState.FAILED
        other = await w.slot()
        await w.client.create(other.id)
        await w.clock.advance(9)
        assert await w.state(other.id) is MachineState.CREATING


async def test_without_a_socket_errors_are_the_same() -> None:
    async with world() as w:
        machine = (await w.slot()).id
        await w.fake.client(FencingStamps("shard-a", 2)).create(machine)
        with pytest.raises(FencedError):
            await w.client.create(machine)
        with pytest.raises(MachineNotFoundError):
            await w.client.get("unknown")
        await w.client.close()
        with pytest.raises(ProviderError, match="CANCELLED: the client is closed"):
            await w.client.get(machine)


@pytest.mark.parametrize(
    "options",
    [
        {"delays": "boot=1s"},
        {"delays": "create=soon"},
        {"stock_outs": "only-a-type"},
        {"stock_outs": "@zone"},
        {"losses": "gold=1"},
        {"losses": "spot=-1"},
        {"slot_prices": "spot=nan"},
        {"slow_ms": -1},
    ],
)
def test_a_lever_that_does_not_exist_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        FakeOptions.model_validate(options)
