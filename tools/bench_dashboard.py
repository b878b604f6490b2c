"""Rows of bench/results.json for the dashboard: a fleet of 200 shards, 100,000 machines and 10,000
needs, served by the real server and looked at in a real Chromium.

Prints them as JSON; progress on stderr. With names only those rows are measured.
"""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "dashboard" / "tests" / "support"))

import uvicorn  # noqa: E402

from bigfleet_dashboard.config import Config  # noqa: E402
from bigfleet_dashboard.sources.channels import Channels  # noqa: E402
from bigfleet_dashboard.state.fleet import Fleet  # noqa: E402
from bigfleet_dashboard.web import views  # noqa: E402
from bigfleet_dashboard.web.api import Api  # noqa: E402
from bigfleet_dashboard.web.app import make_app  # noqa: E402
from bigfleet_dashboard.web.events import EventStreams  # noqa: E402
from bigfleet_dashboard.whatif.service import WhatIf  # noqa: E402
from bigfleet_lab.bench.rows import Bar, BarMeasurement, WrongResultError, print_rows  # noqa: E402
from browser import Page, chromium, find_chromium  # noqa: E402
from demoing import free_addresses  # noqa: E402
from worlds_of_machines import add_shard, machine, need  # noqa: E402

SHARDS, MACHINES, NEEDS = 200, 100_000, 10_000
LOADS, UPDATES = 5, 25
COMMAND = "python tools/bench_dashboard.py"


def large_fleet() -> Fleet:
    """The state a dashboard of that fleet holds."""
    chance, fleet = random.Random(1), Fleet()
    for shard in range(SHARDS):
        machines = [
            machine(
                f"cloud/{shard:03d}/{n:04d}",
                state := chance.choice((1, 3, 5, 5, 5, 5, 6)),
                kind=chance.choice((1, 3, 4)),
                price=chance.choice((0.0, 0.12, 0.38)),
                zone=chance.choice("abc"),
                cluster=f"c-{chance.randrange(100):03d}" if state in (5, 6) else "",
            )
            for n in range(MACHINES // SHARDS)
        ]
        needs = [
            need(f"c-{n % 100:03d}", chance.choice((0, 100, 1000)), reason=chance.random() < 0.05,
                 fingerprint=f"{shard}-{n}")
            for n in range(NEEDS // SHARDS)
        ]  # fmt: skip
        add_shard(fleet, machines, needs, [f"c-{shard % 100:03d}"], f"s-{shard:03d}")
    return fleet


def disturb(fleet: Fleet, chance: random.Random) -> None:
    """Five per cent of the machines of twenty shards change their state."""
    for shard in chance.sample(sorted(fleet.shards), 20):
        state = fleet.shards[shard].machines.state
        for row in chance.sample(range(len(state)), len(state) // 20):
            state[row] = 5 if state[row] != 5 else 6
    fleet.machines_changed()


@contextlib.asynccontextmanager
async def looked_at() -> AsyncIterator[tuple[Fleet, Page, str]]:
    """The fleet, a browser, and where the page is."""
    if find_chromium() is None:
        raise WrongResultError("there is no Chromium here: apt-get install chromium")
    fleet = large_fleet()
    address = free_addresses(1)[0]
    news = EventStreams(fleet, lambda: views.overview(fleet))
    api = Api(fleet, news, WhatIf(fleet, Channels(None)), None)
    app = make_app(fleet, Config(coordinators=("127.0.0.1:1",)), api)
    settings = uvicorn.Config(
        app, "127.0.0.1", int(address.rpartition(":")[2]), log_config=None, lifespan="off",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(settings)
    tasks = [asyncio.create_task(server.serve()), asyncio.create_task(news.run())]
    try:
        async with chromium() as page:
            yield fleet, page, f"http://{address}/"
    finally:
        server.should_exit = True
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


DRAWN = "document.querySelector('canvas')?.getAttribute('aria-label')?.includes('100,000 machines')"


async def first_paint() -> list[float]:
    """Milliseconds until the page first shows content, and then the whole map."""
    found = []
    async with looked_at() as (_fleet, page, url):
        for _ in range(LOADS):
            await page.open("about:blank")
            await page.open(url)
            await page.until(DRAWN, 30)
            found.append(
                await page.value(
                    "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                )
            )
            whole = await page.value("performance.now()")
            print(f"  painted {found[-1]:.0f} ms, map {whole:.0f} ms", file=sys.stderr, flush=True)
    return [float(ms) for ms in found]


async def main_thread(page: Page) -> float:
    """Milliseconds of work on the page's main thread since it was opened."""
    metrics = (await page.call("Performance.getMetrics"))["metrics"]
    return 1000 * next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration")


async def updates() -> list[float]:
    """Milliseconds of main thread for each update in which machines changed."""
    found, chance = [], random.Random(2)
    async with looked_at() as (fleet, page, url):
        await page.open(url)
        await page.until(DRAWN, 30)
        await page.call("Performance.enable")
        await asyncio.sleep(3)
        for _ in range(UPDATES):
            before = await main_thread(page)
            label = await page.value("document.querySelector('canvas').getAttribute('aria-label')")
            disturb(fleet, chance)
            wanted_label = label.replace("'", "")
            await page.until(f"document.querySelector('canvas').ariaLabel !== '{wanted_label}'", 20)
            await asyncio.sleep(0.3)
            found.append(await main_thread(page) - before)
    print(f"  {[round(ms) for ms in found]}", file=sys.stderr, flush=True)
    return found


ROWS = {
    "dashboard.first-paint.100000": Bar(
        lambda: BarMeasurement(asyncio.run(first_paint())), 1500, "ms"
    ),
    "dashboard.update.100000": Bar(lambda: BarMeasurement(asyncio.run(updates())), 200, "ms"),
}


def main(names: Sequence[str]) -> None:
    """Measure these, or all."""
    print_rows(ROWS, names, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
