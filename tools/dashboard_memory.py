"""Whether a dashboard's memory stays flat: server and page over half an hour of a large fleet.

The fleet of bench_dashboard.py: 200 shards, 100,000 machines, 10,000 needs. Machines change every
two seconds, forty decisions come with them, and the page goes once through its screens every
minute. Every minute, after a collection on both sides, one line is printed. Exits 1 when the last
minutes hold more than a tenth above the first ones after warming up.
"""

import argparse
import asyncio
import gc
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from bench_dashboard import DRAWN, disturb, looked_at
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.cost import spend_per_hour
from bigfleet_dashboard.state.fleet import Fleet
from browser import Page

EVERY_SECONDS, DECISIONS = 2.0, 40
MOST_GROWTH = 0.10
SCREENS = ("n", "d", "m", "s", "c", "t", "p", "x", "o")
KINDS = ("Bootstrap", "Provision", "Reclaim", "Preempt", "Drain", "Delete")


@dataclass(frozen=True, slots=True)
class Sample:
    """What is held at one time."""

    server_mb: float
    browser_mb: float
    heap_mb: float
    nodes: float
    listeners: float


async def busy(fleet: Fleet) -> None:
    """A fleet that never rests."""
    chance, cycle = random.Random(3), 100
    shards = sorted(fleet.shards)
    while True:
        cycle += 1
        disturb(fleet, chance)
        for _ in range(DECISIONS):
            shard = chance.choice(shards)
            machine = f"cloud/{shard[2:]}/{chance.randrange(500):04d}"
            decision = pb.Decision(
                cycle=cycle,
                unix_nanos=time.time_ns(),
                kind=chance.choice(KINDS),
                machine_id=machine,
                cluster_id=f"c-{chance.randrange(100):03d}",
                reason=f"cheapest idle machine for priority {chance.randrange(1000)}",
                outcome="success",
            )
            fleet.decisions.take(shard, decision)
        fleet.sample(spend_per_hour(fleet.map))
        fleet.changed()
        await asyncio.sleep(EVERY_SECONDS)


async def through_screens(page: Page) -> None:
    """Every screen once, as a user opens them."""
    for key in SCREENS:
        await page.value(f"document.querySelector('#nav a[data-key={key}]').click()")
        await asyncio.sleep(4.0)
    await page.until(DRAWN, 60)


async def sample(page: Page) -> Sample:
    """After a collection on both sides."""
    gc.collect()
    await page.call("HeapProfiler.collectGarbage")
    reply = (await page.call("Performance.getMetrics"))["metrics"]
    metrics = {each["name"]: float(each["value"]) for each in reply}
    return Sample(
        resident_mb([os.getpid()]),
        resident_mb(descendants(os.getpid())),
        metrics["JSHeapUsedSize"] / 1e6,
        metrics["Nodes"],
        metrics["JSEventListeners"],
    )


def descendants(pid: int) -> list[int]:
    """Processes that this one started, and theirs: the browser."""
    found = []
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, each.read_text().split()):
            found += [child, *descendants(child)]
    return found


def resident_mb(pids: Sequence[int]) -> float:
    """Memory that is theirs alone or theirs in part, in proportion."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


async def run(minutes: int) -> list[Sample]:
    """One sample a minute."""
    found: list[Sample] = []
    async with looked_at() as (fleet, page, url):
        moving = asyncio.create_task(busy(fleet))
        try:
            await page.open(url)
            await page.until(DRAWN, 60)
            await page.call("Performance.enable")
            await page.call("HeapProfiler.enable")
            # Listening to the network makes the browser keep every answer.
            await page.call("Network.disable")
            began = time.monotonic()
            for minute in range(1, minutes + 1):
                await through_screens(page)
                await asyncio.sleep(max(0.0, began + 60 * minute - time.monotonic()))
                found.append(await sample(page))
                reply = (f"{f.name} {getattr(found[-1], f.name):,.1f}" for f in fields(Sample))
                print(f"minute {minute:2}: {', '.join(reply)}", flush=True)
            if page.complaints:
                raise SystemExit(f"the page complains: {page.complaints[:3]}")
        finally:
            moving.cancel()
    return found


def growth(samples: Sequence[Sample], name: str) -> float:
    """The last third against the first after warming up, a sixth of the time."""
    values = [float(getattr(each, name)) for each in samples][len(samples) // 6 :]
    third = max(1, len(values) // 3)
    return statistics.median(values[-third:]) / statistics.median(values[:third]) - 1


def main(argv: Sequence[str]) -> int:
    """Run, tell and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=int, default=30)
    samples = asyncio.run(run(parser.parse_args(argv).minutes))
    grown = {field.name: growth(samples, field.name) for field in fields(Sample)}
    print(", ".join(f"{name} {share:+.1%}" for name, share in grown.items()))
    return int(any(share > MOST_GROWTH for share in grown.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
