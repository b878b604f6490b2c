"""The tests that every provider takes, with DigitalOcean as the subject."""

from pathlib import Path

import pytest

pytest.importorskip("pydo")

from bigfleet_fakecloud import Moment, TestAuthority, serving
from bigfleet_lab.battery import lost_answers, rough_weather, storm, survives_kill
from bigfleet_providerkit import State
from digitalocean_cloud import DigitaloceanCloud
from digitalocean_world import booted, digitalocean_world

MUTATIONS = ("CreateDroplet", "Tag", "Untag", "DeleteDroplet", "DeleteTag")
KILLS = [("CreateDroplet", Moment.AFTER), ("Tag", Moment.AFTER)]
NO_STOCK = (422, "unprocessable_entity")
pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("op", MUTATIONS)
async def test_a_lost_answer_buys_no_second_host(op: str) -> None:
    async with digitalocean_world(window_s=0.5) as world:
        await lost_answers(world.subject(), op)


async def test_forty_creates_end_well_in_rough_weather() -> None:
    async with digitalocean_world(seed_count=40) as world:
        rough_weather(
            world.page.cloud, "CreateDroplet", throttled="too_many_requests", stock_out=NO_STOCK,
            stock_out_text="Size is not available in this region.",
        )  # fmt: skip
        report = await storm(world.subject(), 40, 60)
        assert set(report.ends) <= {"Idle", "OutOfCapacity"}
        assert (report.doubled, report.leaked) == ([], [])


@pytest.mark.parametrize(("op", "moment"), KILLS)
async def test_a_kill_at_an_api_call_loses_nothing(op: str, moment: Moment, tmp_path: Path) -> None:
    page, authority = DigitaloceanCloud(1), TestAuthority.make(tmp_path / "tls")
    with serving(page.cloud, authority=authority) as endpoint:
        boot = booted(page, endpoint, authority)
        await survives_kill(boot, tmp_path, page.cloud, page.present, op, moment)


async def test_eight_thousand_slots_start_no_guest_before_one_is_used() -> None:
    async with digitalocean_world(seed_count=8000) as world:
        assert len(await world.slots()) == 8000
        assert world.page.guests.used == 0
        machine = (await world.idle()).id
        await world.shard.configure(machine)
        await world.shard.until(machine, State.CONFIGURED)
        assert world.page.guests.used == 1
