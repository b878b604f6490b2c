"""Hours of churn on the real processes: a shard of 5,000 machines, its provider, fifty clusters.

Demand of a share of the rows changes with every roll-up. After a warm-up the shard's memory must
stay within a few per cent, nothing may pile up in its queue, and no reclaim may lack a reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.fleet import SimFleet
from bigfleet_lab.simcluster.generator import Mix
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import WallClock
from whole.processes import ShardProcess, processes, provided

MACHINES: Final = 5_000
CLUSTERS: Final = 50
ROWS: Final = 20
MOST_GROWTH: Final = 0.05
_WARM_UP: Final = 0.15
_LOOKS: Final = 240
_BOUND: Final = frozenset({"CONFIGURING", "CONFIGURED", "DRAINING"})


async def run(folder: Path, seconds: float, note: Callable[[str], None]) -> list[str]:
    """All of it; what is wrong in the end."""
    with processes(folder, MACHINES) as shard:
        shard.start()
        await shard.until("its machines", lambda: _knows_all(shard), 120.0)
        dial = GrpcDial(shard.address)
        behaviour = Behaviour(rollup_seconds=10.0, churn=0.05)
        mix = Mix(cpus=(1_000, 2_000, 4_000), replicas=(1, 10), priorities=(100, 1_000), gangs=0.0)
        fleet = SimFleet.make(
            dial, WallClock(), Random(1), clusters=CLUSTERS, rows=ROWS, behaviour=behaviour, mix=mix
        )
        running = asyncio.create_task(fleet.run(10.0))
        try:
            return await _watch(shard, seconds, note)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await dial.close()


def _knows_all(shard: ShardProcess) -> bool:
    return any(cycle["machines"] >= MACHINES for cycle in shard.cycles())


async def _watch(shard: ShardProcess, seconds: float, note: Callable[[str], None]) -> list[str]:
    begun = time.monotonic()
    held: list[int] = []
    waiting: list[float] = []
    for number in range(_LOOKS):
        await asyncio.sleep(max(0.0, begun + (number + 1) * seconds / _LOOKS - time.monotonic()))
        if (time.monotonic() - begun) < seconds * _WARM_UP:
            continue
        held.append(shard.resident())
        waiting.append(shard.metric("action_queue_depth") + shard.metric("execute_inflight"))
        if number % 10 == 0:
            note(f"{time.monotonic() - begun:.0f} s: {held[-1] / 1e6:.0f} MB, {waiting[-1]:.0f}")
    return await _complaints(shard, held, waiting, note)


async def _complaints(
    shard: ShardProcess, held: list[int], waiting: list[float], note: Callable[[str], None]
) -> list[str]:
    found = []
    growth = _mean(held[-len(held) // 5 :]) / _mean(held[: len(held) // 5]) - 1.0
    note(f"memory changed by {growth:+.1%}; at most {max(waiting):.0f} actions waited")
    if growth > MOST_GROWTH:
        found.append(f"memory grew by {growth:.1%}: {MOST_GROWTH:.0%} is let pass")
    if _mean(waiting[-len(waiting) // 5 :]) > 10 + 2 * _mean(waiting[: len(waiting) // 5]):
        found.append(f"the queue grows: {waiting[:: max(1, len(waiting) // 10)]}")
    unforced = shard.metric("reclaims_unforced_total")
    if unforced:
        found.append(f"{unforced:.0f} reclaims had no reason")
    truth = await provided(shard.provider)
    failed = [machine for machine, (state, _) in truth.items() if state == "FAILED"]
    stray = [m for m, (state, cluster) in truth.items() if (state in _BOUND) != bool(cluster)]
    found += [f"{machine} is Failed" for machine in failed[:10]]
    found += [f"{machine} is {truth[machine]}" for machine in stray[:10]]
    return found


def _mean(numbers: list[int] | list[float]) -> float:
    return sum(numbers) / max(1, len(numbers))
