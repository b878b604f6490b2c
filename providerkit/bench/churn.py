"""Churn on 100,000 machines: 2 minutes by default, 10 in a soak. `run(seconds)` asserts it.

Machines are created, bound, drained and given back over real gRPC on a durable store while full
Lists and deltas are read beside them. At the end every machine is at rest, the inventory has its
size, and the provider's memory has stayed below 1 GiB.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from providerkit.bench.provider import boot
from providerkit.bench.rows import Bar, Row, Scenario, expect, row

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit.machines.state import State
from bigfleet_providerkit.testing import Remote, Shard

MACHINES = 100_000
WORKERS = 16
MOST_MEMORY = 1024**3


def resident(process: int) -> int:
    """Bytes of a process in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    return pages * 4096


async def _live(remote: Remote, ids: list[str], worker: int, ends: float) -> int:
    """One machine after the other through its whole life."""
    shard = Shard(remote, f"shard-{worker}")
    lives = 0
    while time.monotonic() < ends:
        machine = ids[lives % len(ids)]
        await shard.create(machine)
        await shard.until(machine, State.IDLE)
        await shard.configure(machine, "cluster", {"life": str(lives)})
        await shard.until(machine, State.CONFIGURED)
        await shard.drain(machine)
        await shard.until(machine, State.IDLE)
        await shard.delete(machine)
        await shard.until(machine, State.SPECULATIVE)
        lives += 1
    return lives


async def _read(remote: Remote, ends: float) -> list[float]:
    """Full Lists and deltas beside the churn; milliseconds of the full ones."""
    samples = []
    while time.monotonic() < ends:
        began = time.perf_counter()
        full = await remote.list(pb.ListFilter())
        samples.append((time.perf_counter() - began) * 1000)
        expect(len(full.machines) == MACHINES, f"{len(full.machines)} machines in a full List")
        delta = await remote.list(pb.ListFilter(since_revision=full.revision))
        expect(len(delta.machines) <= WORKERS * 8, "a delta holds more than what changed")
        await asyncio.sleep(1.0)
    return samples


async def churn(folder: Path, seconds: float) -> Row:
    """The whole scenario."""
    with boot(folder, MACHINES).wait_open() as provider:
        async with provider.channel() as channel:
            remote = Remote(channel)
            ids = [machine.id for machine in (await remote.list(pb.ListFilter())).machines]
            ends = time.monotonic() + seconds
            lists = asyncio.ensure_future(_read(remote, ends))
            parts = (ids[worker::WORKERS][:50] for worker in range(WORKERS))
            workers = [_live(remote, part, n, ends) for n, part in enumerate(parts)]
            lives = sum(await asyncio.gather(*workers))
            samples = await lists
            shown = (await remote.list(pb.ListFilter())).machines
            expect(len(shown) == MACHINES, "the inventory changed its size")
            resting = all(m.state == pb.MACHINE_STATE_SPECULATIVE for m in shown)
            expect(resting and lives > 0, "a machine is left between states")
            memory = resident(provider.process.pid)
            expect(memory <= MOST_MEMORY, f"{memory} bytes in memory")
        expect(provider.stop() == 0, "the provider did not stop cleanly")
    return row("provider.churn.100000", samples, 10_000)


async def two_minutes(folder: Path) -> list[Row]:
    """As often as benchmarks are run."""
    return [await churn(folder, 120.0)]


SCENARIOS = (Scenario(two_minutes, (Bar("provider.churn.100000", 10_000, "ms", "lower"),)),)


def run(seconds: float = 120.0) -> list[Row]:
    """One row: how long full Lists took beside the churn."""
    with tempfile.TemporaryDirectory() as folder:
        return [asyncio.run(churn(Path(folder), seconds))]


if __name__ == "__main__":
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    found = run(wanted)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    sys.exit(0 if all(each["ok"] for each in found) else 1)
