"""Storms at full size, and a kill at every API call of a machine's life.

At the declared rate time passes faster for provider and cloud (`PACE` times, 4 by default); the
SDK, HTTP, SSH and the shells in the guests are real and take real time.
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("hcloud")

from bigfleet_fakecloud import Moment, serving
from bigfleet_lab.battery import (
    FastClock,
    StormReport,
    rough_weather,
    start_report,
    storm,
    survives_every_kill,
)
from bigfleet_provider_hetzner.spec import CALLS
from bigfleet_providerkit import State
from bigfleet_providerkit.testing import eventually
from hetzner_cloud import HetznerCloud
from hetzner_world import HetznerWorld, booted, hetzner_world, kill_subject

STOCK_OUT = (412, "resource_unavailable")
LEFT_OF_THE_HOUR = 600.0
"""Of the 3,600 calls that a project has saved up; at 1.2 calls a second they last 50 minutes."""
PATIENCE_S = 3600.0
LIVES = int(os.environ.get("LIVES", "200"))
PACE = float(os.environ.get("PACE", "4"))
ROUGH_PACE = float(os.environ.get("ROUGH_PACE", "1"))
"""Below 1 where other work takes most of the CPU: 50 calls a second need half of a core."""


def shown(name: str, report: StormReport) -> None:
    """The figures of a storm, for the person who runs it."""
    sys.stderr.write(
        f"\n{name}: {dict(report.ends)} in {report.seconds:.1f} s, "
        f"{report.calls_a_machine():.2f} calls a machine, {report.throttled} answered 429\n"
    )


def rate(each_second: float) -> dict[str, float]:
    """Every call at this rate; all of them share the bucket."""
    return dict.fromkeys(CALLS, each_second)


def project_limit(world: HetznerWorld, burst: float) -> None:
    """A project's limit: so many calls are left, and one a second is given back."""
    world.hetzner.cloud.throttle.limit("*", 1.0, burst)


@pytest.mark.timeout(900)
async def test_a_thousand_creates_in_rough_weather() -> None:
    clock = FastClock(ROUGH_PACE)
    async with hetzner_world(
        clock, seed_count=1000, api_rate=rate(50.0), poll_interval=3.0
    ) as world:
        rough_weather(
            world.hetzner.cloud, "CreateServer", throttled="rate_limit_exceeded",
            stock_out=STOCK_OUT,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 240)
        shown("1,000 creates at 50/s", report)
        assert set(report.ends) == {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])
        assert report.calls_a_machine() <= 8
        assert report.seconds <= 120


@pytest.mark.timeout(900)
async def test_a_thousand_creates_at_the_declared_rate() -> None:
    clock = FastClock(PACE)
    async with hetzner_world(clock, seed_count=1000, api_rate={}, poll_interval=3.0) as world:
        rough_weather(
            world.hetzner.cloud, "CreateServer", throttled="rate_limit_exceeded",
            stock_out=STOCK_OUT,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 600)
        shown("1,000 creates at the declared rate", report)
        assert set(report.ends) <= {"Idle", "OutOfCapacity", "Throttled"}
        assert report.ends["Idle"] > 100
        assert (report.doubled, report.leaked) == ([], [])
        throttled = {m for m, why in report.failures.items() if why.startswith("Throttled")}
        assert len(throttled) == report.ends["Throttled"] > 500
        texts = {report.failures[machine] for machine in throttled}
        assert all("nothing was launched" in text for text in texts), texts
        machine_of = world.subject().machine_of
        assert not throttled & {machine_of(host) for host in world.hosts()}

        async def all_healed() -> bool:
            return not await world.shard.machines(State.FAILED)

        await eventually(all_healed, 300.0, "every machine healed")
        free = {machine.id for machine in await world.shard.machines(State.SPECULATIVE)}
        assert throttled <= free
        assert (world.subject().doubled(), world.subject().leaked()) == ([], [])


@pytest.mark.timeout(3600)
async def test_lives_at_the_declared_rate_beside_a_second_client() -> None:
    clock = FastClock(PACE)
    async with hetzner_world(
        clock, seed_count=LIVES, api_rate={}, poll_interval=3.0, create_timeout=PATIENCE_S,
        configure_timeout=PATIENCE_S, delete_timeout=PATIENCE_S,
    ) as world:  # fmt: skip
        project_limit(world, LEFT_OF_THE_HOUR)
        stop = asyncio.Event()
        other = asyncio.get_running_loop().create_task(second_client(world, stop))
        report = await storm(world.subject(), LIVES, PATIENCE_S)
        shown(f"{LIVES} creates beside a second client", report)
        assert set(report.ends) == {"Idle"}
        machines = [machine.id for machine in await world.shard.machines(State.IDLE)]
        await all_of(world, machines, world.shard.configure, State.CONFIGURED)
        # With a short grace, labels that get no turn in time are left to reconcile.
        drain = partial(world.shard.drain, grace=int(PATIENCE_S))
        await all_of(world, machines, drain, State.IDLE)
        await all_of(world, machines, world.shard.delete, State.SPECULATIVE)
        stop.set()
        seen = await other
        statuses = Counter(call.status for call in list(world.hetzner.cloud.calls))
        ops = Counter(call.op for call in list(world.hetzner.cloud.calls))
        own = statuses.total() - seen.total()
        sys.stderr.write(
            f"\n{LIVES} lives in {clock.monotonic():.0f} s: {own / LIVES:.2f} calls a machine, "
            f"{dict(statuses)}, {dict(ops)}; second client {dict(seen)}\n"
        )
        assert statuses[429] == 0
        assert set(seen) == {200}
        assert ops["UpdateLabels"] == 2 * LIVES
        assert world.hosts() == []


@pytest.mark.timeout(900)
async def test_a_rate_declared_fifty_times_too_high() -> None:
    """The creates alone find the limit; they and whole lives waste a quarter at most."""
    clock = FastClock(PACE)
    async with hetzner_world(
        clock, seed_count=200, api_rate=rate(50.0), poll_interval=3.0, create_timeout=PATIENCE_S,
        delete_timeout=PATIENCE_S,
    ) as world:  # fmt: skip
        project_limit(world, burst=60.0)
        report = await storm(world.subject(), 200, PATIENCE_S)
        shown("200 creates at 50 times the rate", report)
        assert set(report.ends) == {"Idle"}
        assert (report.doubled, report.leaked) == ([], [])
        assert report.throttled_share() <= 0.25
        machines = [machine.id for machine in await world.shard.machines(State.IDLE)]
        await all_of(world, machines, world.shard.delete, State.SPECULATIVE)
        statuses = Counter(call.status for call in list(world.hetzner.cloud.calls))
        sys.stderr.write(f"\nwith their deletion: {dict(statuses)}\n")
        assert statuses[429] <= 0.25 * statuses.total()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
async def test_a_kill_at_every_api_call_loses_nothing(moment: Moment, tmp_path: Path) -> None:
    calls = await survives_every_kill(kill_subject, tmp_path, moment)
    sys.stderr.write(f"\nkilled {moment} {len(calls)} calls: {' '.join(calls)}\n")
    assert {"SSHKeys", "CreateServer", "GetServer", "DeleteServer"} <= set(calls)
    assert calls.count("UpdateLabels") == 2


def test_twenty_thousand_slots_are_ready_in_time_and_memory(tmp_path: Path) -> None:
    hetzner = HetznerCloud(1)
    with serving(hetzner.cloud) as endpoint:
        began = time.monotonic()
        with booted(hetzner, endpoint, 20_000)(tmp_path) as provider:
            report = start_report(provider, began)
            sys.stderr.write(f"\n20,000 slots: {report}\n")
            assert report.ready_s <= 6
            assert report.resident_mb <= 250


async def second_client(world: HetznerWorld, stop: asyncio.Event) -> Counter[int]:
    """Another program with the same project: a call every five seconds of the provider's clock."""
    seen: Counter[int] = Counter()

    def call() -> int:
        request = urllib.request.Request(
            f"{world.endpoint}/v1/servers?per_page=1", headers={"Authorization": "Bearer other"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            json.load(answer)
            return int(answer.status)

    while not stop.is_set():
        seen[await asyncio.to_thread(call)] += 1
        try:
            await asyncio.wait_for(stop.wait(), 5.0 / PACE)
        except TimeoutError:
            continue
    return seen


async def all_of(
    world: HetznerWorld,
    machines: list[str],
    mutate: Callable[[str], Awaitable[object]],
    state: State,
) -> None:
    """The same mutation of all machines, and their state afterwards."""
    for machine in machines:
        await mutate(machine)
    for machine in machines:
        await world.shard.until(machine, state, PATIENCE_S)
