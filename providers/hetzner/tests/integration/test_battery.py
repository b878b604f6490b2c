"""The tests that every provider takes, with Hetzner Cloud as the subject."""

from pathlib import Path

import pytest

pytest.importorskip("hcloud")

from bigfleet_fakecloud import Moment, serving
from bigfleet_lab.battery import lost_answers, rough_weather, storm, survives_kill
from bigfleet_providerkit import State
from hetzner_cloud import HetznerCloud
from hetzner_world import MUTATIONS, booted, hetzner_world

KILLS = [("CreateServer", Moment.AFTER), ("UpdateLabels", Moment.AFTER)]
STOCK_OUT = (412, "resource_unavailable")


@pytest.mark.parametrize("op", MUTATIONS)
async def test_a_lost_answer_buys_no_second_host(op: str) -> None:
    async with hetzner_world() as world:
        await lost_answers(world.subject(), op)


async def test_forty_creates_end_well_in_rough_weather() -> None:
    async with hetzner_world(seed_count=40) as world:
        rough_weather(
            world.hetzner.cloud, "CreateServer", throttled="rate_limit_exceeded",
            stock_out=STOCK_OUT,
        )  # fmt: skip
        report = await storm(world.subject(), 40, 60)
        assert set(report.ends) <= {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])


@pytest.mark.parametrize(("op", "moment"), KILLS)
async def test_a_kill_at_an_api_call_loses_nothing(op: str, moment: Moment, tmp_path: Path) -> None:
    hetzner = HetznerCloud(1)
    with serving(hetzner.cloud) as endpoint:
        boot = booted(hetzner, endpoint)
        await survives_kill(boot, tmp_path, hetzner.cloud, hetzner.present, op, moment)


async def test_eight_thousand_slots_start_no_guest_before_one_is_used() -> None:
    async with hetzner_world(seed_count=8000) as world:
        await world.idle()
        assert world.hetzner.guests.used == 0
        machine = (await world.shard.machines(State.IDLE))[0].id
        await world.shard.configure(machine)
        await world.shard.until(machine, State.CONFIGURED)
        assert world.hetzner.guests.used == 1
