"""Storms at full size, and a kill at every API call of a machine's life."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("boto3")

import boto3

from aws_cloud import AwsCloud
from aws_world import AwsWorld, aws_world, booted, kill_subject
from bigfleet_fakecloud import Moment, serving
from bigfleet_lab.battery import (
    StormReport,
    created_and_deleted,
    limit_as_declared,
    rough_weather,
    start_report,
    storm,
    survives_every_kill,
    whole_lives,
)
from bigfleet_provider_aws.spec import SPEC

NO_STOCK = (500, "InsufficientInstanceCapacity")
OPS = (
    "RunInstances", "DescribeInstances", "SendCommand", "GetCommandInvocation", "CreateTags",
    "DeleteTags", "TerminateInstances",
)  # fmt: skip
LIVES = int(os.environ.get("LIVES", "200"))
ON_DEMAND = "- {instance_type: m6i.large, zone: us-east-1a, capacity_type: on_demand, count: %d}"
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


@pytest.mark.timeout(2400)
async def test_lives_at_the_declared_rates_beside_another_program() -> None:
    async with aws_world(
        offerings=ON_DEMAND % LIVES, poll_interval=3.0, create_timeout=1200.0,
        configure_timeout=1200.0, drain_timeout=1200.0, delete_timeout=1200.0,
    ) as world:  # fmt: skip
        limit_as_declared(world.aws.cloud, SPEC.calls)
        report = await whole_lives(world.subject(), LIVES, 1200, another_program(world))
        sys.stderr.write(f"\nat the declared rates: {report}\n")
        assert set(report.creates.ends) == {"Idle"}
        assert report.throttled.total() == 0
        assert set(report.others) == {200}


@pytest.mark.timeout(900)
async def test_rates_declared_fifty_times_too_high() -> None:
    rates = {"RunInstances": 100.0, "TerminateInstances": 250.0, "DescribeInstances": 1000.0}
    async with aws_world(
        offerings=ON_DEMAND % 200, api_rate=rates, poll_interval=3.0, create_timeout=1200.0,
        delete_timeout=1200.0,
    ) as world:  # fmt: skip
        limit_as_declared(world.aws.cloud, SPEC.calls)
        report = await created_and_deleted(world.subject(), 200, 600)
        sys.stderr.write(f"\nat 50 times the rates: {report}\n")
        assert set(report.creates.ends) == {"Idle"}
        assert (report.creates.doubled, report.creates.leaked) == ([], [])
        assert report.throttled_share() <= 0.25


def another_program(world: AwsWorld) -> Callable[[], int]:
    """A program that lists instances in the same account."""
    ec2 = boto3.client("ec2", endpoint_url=world.endpoint, region_name="us-east-1")

    def call() -> int:
        answer = ec2.describe_instances(MaxResults=5)
        return int(answer["ResponseMetadata"]["HTTPStatusCode"])

    return call


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
async def test_a_kill_at_every_api_call_loses_nothing(moment: Moment, tmp_path: Path) -> None:
    calls = await survives_every_kill(kill_subject, tmp_path, moment)
    sys.stderr.write(f"\nkilled {moment} {len(calls)} calls: {' '.join(calls)}\n")
    assert set(OPS) <= set(calls)


def test_twenty_thousand_slots_are_ready_soon_and_small(tmp_path: Path) -> None:
    aws = AwsCloud(1)
    with serving(aws.cloud) as endpoint:
        began = time.monotonic()
        with booted(endpoint, 20_000)(tmp_path) as provider:
            report = start_report(provider, began)
    sys.stderr.write(f"\n20,000 slots: {report.ready_s:.1f} s, {report.resident_mb:.0f} MB\n")
    assert report.resident_mb <= 300
    assert report.ready_s <= 6
