"""How fast a provider is: real gRPC on loopback, a durable store, an instant substrate.

Each scenario checks what it measured (every machine IDLE, ids distinct, lists complete): a fast
wrong answer has no figure. The provider is a process of its own, so client and server each have a
core.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from providerkit.bench.rows import Bar, Row, Scenario, expect, quantile, row

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_provider_template.spec import SPEC
from bigfleet_providerkit import MemorySubstrate, start
from bigfleet_providerkit.machines.state import State
from bigfleet_providerkit.main import settle_down
from bigfleet_providerkit.memory.substrate import MemoryHost
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard, eventually

IN_FLIGHT = 64
CREATES = 4_000


def boot(folder: Path, slots: int, *arguments: str) -> ProviderProcess:
    """A template provider with a durable store."""
    command = ProviderProcess.module("bigfleet_provider_template")
    return ProviderProcess(
        command, "--use-fake-backend", f"--seed-count={slots}", f"--state={folder / 'state.db'}",
        "--log-level=warning", *arguments, log=folder / "log",
    )  # fmt: skip


async def timed(call: Awaitable[object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


async def create_many(shard: Shard, ids: Sequence[str]) -> tuple[list[float], float]:
    """Create with 64 in flight; milliseconds each, and how many a second."""
    samples: list[float] = []
    operations: set[str] = set()
    waiting = iter(ids)

    async def worker() -> None:
        for machine in waiting:
            began = time.perf_counter()
            ack = await shard.create(machine)
            samples.append((time.perf_counter() - began) * 1000)
            operations.add(ack.operation_id)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    rate = len(ids) / (time.perf_counter() - began)
    expect(len(operations) == len(ids), "operation ids are not distinct")

    async def all_idle() -> bool:
        return len(await shard.machines(State.IDLE)) >= len(ids)

    await eventually(all_idle, 60.0, "all created machines IDLE")
    return samples, rate


async def measure_mutations(folder: Path) -> list[Row]:
    """Creates in flight, one at a time, and Gets, on 8,000 machines."""
    with boot(folder, 8_000).wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            ids = [machine.id for machine in await shard.machines()]
            expect(len(ids) == 8_000, f"{len(ids)} machines instead of 8000")
            await create_many(shard, ids[:500])
            samples, rate = await create_many(shard, ids[500 : 500 + CREATES])
            many = row(
                "provider.create.8000", samples, 1000, value=rate, unit="1/s", better="higher",
                ok=quantile(samples, 0.99) <= 80,
            )  # fmt: skip
            rest = ids[500 + CREATES :]
            singles = [await timed(shard.create(machine)) for machine in rest[:500]]
            one = row("provider.create-one.8000", singles, 10)
            gets = [await timed(shard.get(machine)) for machine in ids[:2000]]
            expect(await shard.state(ids[0]) is State.IDLE, "the first machine is not IDLE")
            return [many, one, row("provider.get.8000", gets, 5)]


async def measure_list(folder: Path) -> list[Row]:
    """Full Lists of 20,000 machines."""
    with boot(folder, 20_000).wait_open() as provider:
        async with provider.channel() as channel:
            remote = Remote(channel)
            samples = []
            for _ in range(60):
                began = time.perf_counter()
                machines = (await remote.list(pb.ListFilter())).machines
                samples.append((time.perf_counter() - began) * 1000)
                expect(len(machines) == 20_000, f"{len(machines)} machines instead of 20000")
            return [row("provider.list.20000", samples[5:], 200)]


async def measure_start(folder: Path) -> list[Row]:
    """Seconds until the port is open, fresh and from the store; the slower one counts."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        with boot(folder, 20_000).wait_open() as provider:
            seconds.append(time.perf_counter() - began)
            async with provider.channel() as channel:
                machines = (await Remote(channel).list(pb.ListFilter())).machines
                expect(len(machines) == 20_000, f"{len(machines)} machines instead of 20000")
            expect(provider.stop() == 0, "the provider did not stop cleanly")
    return [row("provider.start.20000", [], 3.0, value=max(seconds), unit="s")]


async def measure_reconcile(folder: Path) -> list[Row]:
    """A pass over 20,000 hosts without a change, inside this process; it must not hold the loop."""
    options = SPEC.options(
        use_fake_backend=True, seed_count=20_000, state="memory", reconcile_interval=0.0
    )
    running = await start(SPEC, options, listen=False)
    cloud = running.substrate
    assert isinstance(cloud, MemorySubstrate)
    for number, record in enumerate(list(running.backend.ledger.inventory)):
        shape = record.shape
        host = MemoryHost(
            f"i-{number}", record.id, f"otherstore-{number}", shape.instance_type, shape.zone,
            int(shape.capacity_type), 1.0,
        )  # fmt: skip
        cloud.hosts[host.ref] = host
    await running.reconcile()
    inventory = running.backend.ledger.inventory
    expect(sum(1 for record in inventory if record.host) == 20_000, "not all hosts adopted")
    head, lags = inventory.head, []
    settle_down()

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0)
            lags.append(time.perf_counter() - began)

    watcher = asyncio.ensure_future(watch())
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        expect(await running.reconcile(), "the pass failed")
        seconds.append(time.perf_counter() - began)
    watcher.cancel()
    expect(inventory.head == head, "a pass without a change moved the revision")
    await running.stop()
    held = max(lags) * 1000
    return [row("provider.reconcile.20000", [], 2.0, value=max(seconds), unit="s", ok=held <= 20.0)]


SCENARIOS = (
    Scenario(
        measure_mutations,
        (
            Bar("provider.create.8000", 1000, "1/s", "higher"),
            Bar("provider.create-one.8000", 10, "ms", "lower"),
            Bar("provider.get.8000", 5, "ms", "lower"),
        ),
        times=3,
    ),
    Scenario(measure_list, (Bar("provider.list.20000", 200, "ms", "lower"),)),
    Scenario(measure_start, (Bar("provider.start.20000", 3.0, "s", "lower"),)),
    Scenario(measure_reconcile, (Bar("provider.reconcile.20000", 2.0, "s", "lower"),)),
)
