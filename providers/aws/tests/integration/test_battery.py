"""The tests that every provider takes, with AWS as the subject."""

from pathlib import Path

import pytest

pytest.importorskip("boto3")

from aws_cloud import AwsCloud
from aws_world import aws_world, booted, present
from bigfleet_fakecloud import Moment, serving
from bigfleet_lab.battery import lost_answers, rough_weather, storm, survives_kill
from bigfleet_providerkit import State
from bigfleet_providerkit.testing import eventually

MUTATIONS = ("RunInstances", "CreateTags", "DeleteTags", "SendCommand", "TerminateInstances")
KILLS = [("RunInstances", Moment.AFTER), ("CreateTags", Moment.AFTER)]
NO_STOCK = (500, "InsufficientInstanceCapacity")
FAST = {"RunInstances": 500.0, "DescribeInstances": 500.0}
pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("op", MUTATIONS)
async def test_a_lost_answer_buys_no_second_host(op: str) -> None:
    async with aws_world() as world:
        await lost_answers(world.subject(), op)


async def test_forty_creates_end_well_in_rough_weather() -> None:
    async with aws_world(seed_count=40, api_rate=FAST) as world:
        rough_weather(
            world.aws.cloud, "RunInstances", throttled="RequestLimitExceeded",
            throttled_status=503, stock_out=NO_STOCK,
        )  # fmt: skip
        report = await storm(world.subject(), 40, 60)
        assert set(report.ends) <= {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])


@pytest.mark.parametrize(("op", "moment"), KILLS)
async def test_a_kill_at_an_api_call_loses_nothing(op: str, moment: Moment, tmp_path: Path) -> None:
    aws = AwsCloud(1)
    with serving(aws.cloud) as endpoint:
        boot = booted(endpoint)
        await survives_kill(boot, tmp_path, aws.cloud, lambda: present(aws), op, moment)


async def test_eight_thousand_slots_start_no_guest_before_one_is_used() -> None:
    async with aws_world(seed_count=8000) as world:
        assert len(await world.shard.machines()) == 8000
        assert world.aws.guests.used == 0
        machine = (await world.idle()).id
        await world.shard.configure(machine)
        await world.shard.until(machine, State.CONFIGURED)
        assert world.aws.guests.used == 1


async def test_a_notice_is_on_the_wire_within_five_seconds_of_its_message() -> None:
    async with aws_world(queue=True) as world:
        machine = await world.idle("Spot")
        instance = world.aws.ec2.instances.happen(machine.host.ref, "reclaim")

        async def announced() -> bool:
            return (await world.shard.get(machine.id)).interruption_unix_nanos > 0

        await eventually(announced, seconds=5.0, what="the announced end")
        ends = (await world.shard.get(machine.id)).interruption_unix_nanos / 1e9
        assert ends == pytest.approx(instance.changed + 120, abs=1.0)
