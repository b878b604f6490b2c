"""Storms at full size, and a kill at every API call of a machine's life."""

import os
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydo")

from bigfleet_fakecloud import Moment, TestAuthority, serving
from bigfleet_lab.battery import (
    FastClock,
    StormReport,
    created_and_deleted,
    rough_weather,
    start_report,
    storm,
    survives_every_kill,
    whole_lives,
)
from digitalocean_cloud import DigitaloceanCloud
from digitalocean_world import TOKEN, DigitaloceanWorld, booted, digitalocean_world, kill_subject

NO_STOCK = (422, "unprocessable_entity")
NO_STOCK_TEXT = "Size is not available in this region."
OPS = (
    "ListDroplets", "CreateDroplet", "GetDroplet", "Tag", "Untag", "DeleteDroplet", "DeleteTag",
)  # fmt: skip
PACE = float(os.environ.get("PACE", "2"))
"""How much faster time passes at the declared rate, where most of it is waiting."""
LIVES = int(os.environ.get("LIVES", "200"))
TOKEN_LIMIT = (5000 / 3600, 250.0)
"""What a token has: 5,000 calls an hour, and 250 of them in a minute."""
FIFTY = {"CreateDroplet": 50.0}


def shown(name: str, report: StormReport) -> None:
    """The figures of a storm, for the person who runs it."""
    sys.stderr.write(
        f"\n{name}: {dict(report.ends)} in {report.seconds:.1f} s, "
        f"{report.calls_a_machine():.2f} calls a machine, {report.throttled} answered 429\n"
    )


@pytest.mark.timeout(400)
async def test_a_thousand_creates_in_rough_weather() -> None:
    async with digitalocean_world(seed_count=1000, api_rate=FIFTY, poll_interval=3.0) as world:
        rough_weather(
            world.page.cloud, "CreateDroplet", throttled="too_many_requests", stock_out=NO_STOCK,
            stock_out_text=NO_STOCK_TEXT,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 300)
        shown("1,000 creates at 50/s", report)
        assert set(report.ends) == {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])
        assert report.calls_a_machine() <= 8
        assert report.seconds <= 120


@pytest.mark.timeout(700)
async def test_a_thousand_creates_at_the_declared_rate() -> None:
    async with digitalocean_world(
        FastClock(PACE), seed_count=1000, api_rate={}, poll_interval=5.0
    ) as world:  # fmt: skip
        rough_weather(
            world.page.cloud, "CreateDroplet", throttled="too_many_requests", stock_out=NO_STOCK,
            stock_out_text=NO_STOCK_TEXT,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 600)
        shown("1,000 creates at the declared rate", report)
        # An order whose turn comes in the last seconds has no time left for a look at its Droplet.
        assert set(report.ends) <= {"Idle", "OutOfCapacity", "Throttled", "Timeout"}, (
            report.failures
        )
        assert (report.doubled, report.leaked) == ([], [])


@pytest.mark.timeout(3000)
async def test_lives_at_the_declared_rate_beside_another_program() -> None:
    async with digitalocean_world(
        FastClock(PACE), seed_count=LIVES, api_rate={}, poll_interval=5.0, create_timeout=1800.0,
        configure_timeout=1800.0, drain_timeout=1800.0, delete_timeout=1800.0,
    ) as world:  # fmt: skip
        world.page.cloud.throttle.limit("*", *TOKEN_LIMIT)
        report = await whole_lives(world.subject(), LIVES, 1800, another_program(world))
        sys.stderr.write(f"\nat the declared rate: {report}\n")
        assert set(report.creates.ends) == {"Idle"}
        assert report.throttled.total() == 0
        assert set(report.others) == {200}


@pytest.mark.timeout(900)
async def test_a_rate_declared_fifty_times_too_high() -> None:
    async with digitalocean_world(
        FastClock(PACE), seed_count=200, api_rate={"CreateDroplet": 65.0}, poll_interval=5.0,
        create_timeout=1800.0, delete_timeout=1800.0,
    ) as world:  # fmt: skip
        world.page.cloud.throttle.limit("*", TOKEN_LIMIT[0], 60.0)
        report = await created_and_deleted(world.subject(), 200, 800)
        sys.stderr.write(f"\nat 50 times the rate: {report}\n")
        assert set(report.creates.ends) == {"Idle"}
        assert (report.creates.doubled, report.creates.leaked) == ([], [])
        assert report.throttled_share() <= 0.25


def another_program(world: DigitaloceanWorld) -> Callable[[], int]:
    """A program that lists Droplets with the same token."""
    trust = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])

    def call() -> int:
        request = urllib.request.Request(
            f"{world.endpoint}/v2/droplets?per_page=1", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
            return int(answer.status)

    return call


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
async def test_a_kill_at_every_api_call_loses_nothing(moment: Moment, tmp_path: Path) -> None:
    calls = await survives_every_kill(kill_subject, tmp_path, moment)
    sys.stderr.write(f"\nkilled {moment} {len(calls)} calls: {' '.join(calls)}\n")
    assert set(OPS) <= set(calls)


def test_twenty_thousand_slots_are_ready_soon_and_small(tmp_path: Path) -> None:
    page, authority = DigitaloceanCloud(1), TestAuthority.make(tmp_path / "tls")
    with serving(page.cloud, authority=authority) as endpoint:
        began = time.monotonic()
        with booted(page, endpoint, authority, 20_000)(tmp_path) as provider:
            report = start_report(provider, began)
    sys.stderr.write(f"\n20,000 slots: {report.ready_s:.1f} s, {report.resident_mb:.0f} MB\n")
    assert report.resident_mb <= 450
    assert report.ready_s <= 8
