"""A provider on virtual time, for tests: three lines build a world, and its words are the domain's.

async with world() as w:
    machine = await w.idle()
    await w.shard.configure(machine)
    await w.advance(1)
"""

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    InterruptionTable,
    KitOptions,
    Limits,
    MemorySubstrate,
    PriceTable,
    ProviderSpec,
    RunningProvider,
    Runtime,
    State,
    Timeouts,
    VirtualClock,
    start,
)
from bigfleet_providerkit.clock import inline
from bigfleet_providerkit.store.interface import Store
from bigfleet_providerkit.store.memory import MemoryStore
from bigfleet_providerkit.testing import Shard

SHAPE = {"cpu": "4", "memory": "16Gi"}


def slots(kind: str = "on_demand", **fields: object) -> dict[str, object]:
    """An offering of the test's only type."""
    offering: dict[str, object] = {
        "instance_type": "t-4", "zone": "zone-a", "capacity_type": kind,
        "resources": SHAPE, "allocatable": SHAPE,
    }  # fmt: skip
    return {**offering, **fields}


async def no_substrate(options: KitOptions, kit: object) -> MemorySubstrate:
    """The tests' provider has no substrate but the one in memory."""
    raise AssertionError("the substrate in memory is always used")


SPEC = ProviderSpec(
    name="test",
    version="0.0.1",
    options=KitOptions,
    open=no_substrate,
    mix=(Bucket(slots(), share=1), Bucket(slots("spot"), share=1)),
    prices=PriceTable.flat(date(2026, 11, 1), {"t-4": 0.4}, spot_fraction=0.3),
    shapes={"t-4": Capacity(4000, 16 * 1024**3)},
    interruption=InterruptionTable({"t-4": 0.05}),
    region=lambda options: "region-a",
    capacity_types=frozenset(CapacityType),
    timeouts=Timeouts(create=300, configure=300, drain=600, delete=300),
    limits=Limits(blob=1024 * 1024),
    poll_interval=1.0,
)


@dataclass
class World:
    """One running provider and the shard that calls it."""

    running: RunningProvider[KitOptions]
    clock: VirtualClock
    store: Store
    shard: Shard = field(init=False)

    def __post_init__(self) -> None:
        self.shard = Shard(self.running.service)

    @property
    def substrate(self) -> MemorySubstrate:
        """The cloud, with its levers."""
        assert isinstance(self.running.substrate, MemorySubstrate)
        return self.running.substrate

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.advance(seconds)

    async def fresh(self, kind: CapacityType = CapacityType.ON_DEMAND) -> str:
        """A free slot."""
        for machine in await self.shard.machines(State.SPECULATIVE):
            if machine.capacity_type == int(kind):
                return machine.id
        raise AssertionError("no free slot left")

    async def idle(self, kind: CapacityType = CapacityType.ON_DEMAND) -> str:
        """A machine with a host."""
        machine = await self.fresh(kind)
        await self.shard.create(machine)
        await self.reach(machine, State.IDLE)
        return machine

    async def configured(self, cluster: str = "cluster-a", **metadata: str) -> str:
        """A machine bound to a cluster."""
        machine = await self.idle()
        await self.shard.configure(machine, cluster, metadata)
        await self.reach(machine, State.CONFIGURED)
        return machine

    async def reach(self, machine: str, state: State, limit: float = 3600.0) -> pb.Machine:
        """Let time pass until a machine is in a state."""
        record = self.running.backend.ledger.inventory

        def there() -> bool:
            found = record.get(machine)
            return found is not None and found.state is state

        await self.clock.until(there, limit)
        return await self.shard.get(machine)

    def metric(self, name: str, **labels: str) -> float:
        """The value of one series of this provider."""
        registry = self.running.metrics.registry
        return registry.get_sample_value(f"bigfleet_provider_{name}", labels) or 0.0

    async def restart(self, **options: object) -> "World":
        """The process is killed and a new one starts on the same store."""
        await self.running.crash()
        given = {**self.running.options.model_dump(exclude_unset=True), **options}
        running = await start(
            self.running.spec, KitOptions.model_validate(given),
            runtime=Runtime(self.clock, random.Random(2), inline), store=self.store, listen=False,
        )  # fmt: skip
        return World(running, self.clock, self.store)


async def begin(
    spec: ProviderSpec[KitOptions] = SPEC,
    *,
    store: Store | None = None,
    seed: int = 1,
    **options: object,
) -> World:
    """Start a world; the caller stops it."""
    clock = VirtualClock()
    kept = store or MemoryStore()
    given = {"use_fake_backend": True, "seed_count": 8, "reconcile_interval": 0, **options}
    running = await start(
        spec, KitOptions.model_validate(given),
        runtime=Runtime(clock, random.Random(seed), inline), store=kept, listen=False,
    )  # fmt: skip
    return World(running, clock, kept)


@contextlib.asynccontextmanager
async def world(
    spec: ProviderSpec[KitOptions] = SPEC, *, store: Store | None = None, **options: object
) -> AsyncIterator[World]:
    """A world for the length of a test."""
    made = await begin(spec, store=store, seed=1, **options)
    try:
        yield made
    finally:
        await made.running.stop()
