"""Storms at full size, and a kill at every API call of a machine's life."""

import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("boto3")

from aws_cloud import AwsCloud
from aws_world import aws_world, booted, present
from bigfleet_fakecloud import Moment, serving
from bigfleet_lab.battery import StormReport, rough_weather, start_report, storm, survives_kill

NO_STOCK = (500, "InsufficientInstanceCapacity")
OPS = (
    "RunInstances", "DescribeInstances", "SendCommand", "GetCommandInvocation", "CreateTags",
    "DeleteTags", "TerminateInstances",
)  # fmt: skip
FIFTY = {"RunInstances": 50.0, "DescribeInstances": 50.0}


def shown(name: str, report: StormReport) -> None:
    """The figures of a storm, for the person who runs it."""
    sys.stderr.write(
        f"\n{name}: {dict(report.ends)} in {report.seconds:.1f} s, "
        f"{report.calls_a_machine():.2f} calls a machine\n"
    )


@pytest.mark.timeout(400)
async def test_a_thousand_creates_in_rough_weather() -> None:
    async with aws_world(seed_count=1000, api_rate=FIFTY, poll_interval=3.0) as world:
        rough_weather(
            world.aws.cloud, "RunInstances", throttled="RequestLimitExceeded",
            throttled_status=503, stock_out=NO_STOCK,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 300)
        shown("1,000 creates at 50/s", report)
        assert set(report.ends) == {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])
        assert report.calls_a_machine() <= 8
        assert report.seconds <= 120


@pytest.mark.timeout(900)
async def test_a_thousand_creates_at_the_declared_rate() -> None:
    async with aws_world(seed_count=1000, poll_interval=3.0) as world:
        rough_weather(
            world.aws.cloud, "RunInstances", throttled="RequestLimitExceeded",
            throttled_status=503, stock_out=NO_STOCK,
        )  # fmt: skip
        report = await storm(world.subject(), 1000, 800)
        shown("1,000 creates at the declared rate", report)
        assert set(report.ends) <= {"Idle", "OutOfCapacity", "Throttled"}
        assert (report.doubled, report.leaked) == ([], [])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
async def test_a_kill_at_every_api_call_loses_nothing(
    op: str, moment: Moment, tmp_path: Path
) -> None:
    aws = AwsCloud(1)
    with serving(aws.cloud) as endpoint:
        boot = booted(endpoint)
        await survives_kill(boot, tmp_path, aws.cloud, lambda: present(aws), op, moment)


def test_twenty_thousand_slots_are_ready_soon_and_small(tmp_path: Path) -> None:
    aws = AwsCloud(1)
    with serving(aws.cloud) as endpoint:
        began = time.monotonic()
        with booted(endpoint, 20_000)(tmp_path) as provider:
            report = start_report(provider, began)
    sys.stderr.write(f"\n20,000 slots: {report.ready_s:.1f} s, {report.resident_mb:.0f} MB\n")
    assert report.resident_mb <= 300
    assert report.ready_s <= 6
