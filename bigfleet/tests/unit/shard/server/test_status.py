"""What people see of a shard and do to it, in the words of reading and administration."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bigfleet.decision import Policy
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.server.status import Facade
from whole.living import Setting, Whole, cluster, live, provider


def setting() -> Setting:
    return Setting([provider("p1", 6), provider("p2", 4)], [cluster(replicas=4)])


async def met(whole: Whole, replicas: int = 4) -> None:
    await whole.until(lambda: whole.bound() == replicas, 300.0, f"{replicas} bound machines")


def test_before_the_first_cycle_there_is_nothing_to_see() -> None:
    async def story(whole: Whole) -> None:
        facade = Facade(whole.shard)
        assert facade.need_views() is None
        assert len(facade.demand()) == 0
        assert facade.machine("p1/unknown") is None

    live(replace(setting(), clusters=()), story)


def test_the_state_says_how_it_is_doing() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        facade = Facade(whole.shard)
        state = facade.state()
        assert (state.shard_id, state.epoch) == ("s1", whole.shard.epoch)
        assert state.sessions == ["c1"]
        assert {p.name: p.machines for p in state.providers} == {"p1": 6, "p2": 4}
        assert all(p.reachable and not p.last_error for p in state.providers)
        assert state.rails == []
        assert facade.has_session("c1")
        assert facade.knows_cluster("c1")
        assert not facade.knows_cluster("c9")
        assert len(facade.fleet()) == 10
        assert len(facade.demand()) == 1
        assert facade.decisions.count >= 4

    live(setting(), story)


def test_every_rail_that_is_engaged_is_named() -> None:
    def tune(tuning: ShardConfig) -> ShardConfig:
        return replace(tuning, policy=Policy(spend_limit_micro=12_500_000))

    async def story(whole: Whole) -> None:
        await met(whole)
        facade = Facade(whole.shard)
        await facade.pause("maintenance")
        first = min(whole.provider.slots)
        await facade.exclude_machine(first, True)
        assert facade.state().rails == [
            "paused: maintenance",
            "spend limit: $12.50/h of elastic capacity",
            f"excluded from every decision: {first}",
        ]
        for number in range(21):
            await facade.exclude_machine(f"z-{number}", True)
        assert facade.state().rails[-1].endswith("z-7 and 2 more")

    live(replace(setting(), tune=tune), story)


def test_a_pause_outlives_a_restart_and_ends_with_resume() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        await Facade(whole.shard).pause("maintenance")
        whole.scale(6)
        await asyncio.sleep(60.0)
        assert whole.bound() == 4
        await whole.restart()
        await asyncio.sleep(60.0)
        facade = Facade(whole.shard)
        assert facade.state().paused
        assert facade.state().pause_reason == "maintenance"
        assert whole.bound() == 4
        await facade.resume()
        await met(whole, 6)

    live(setting(), story)


def test_a_machine_is_drained_because_a_person_asked() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        facade, machine = Facade(whole.shard), whole.shard.book.bound("c1")[0]
        whole.world.monitor.excuse("c1", whole.loop.time())
        await facade.exclude_machine(machine, True)
        await facade.drain_machine(machine)
        await whole.until(lambda: not whole.provider.slots[machine].cluster, 120.0, "the drain")
        await met(whole)
        assert whole.metric("reclaims_unforced_total") == 0

    live(setting(), story)


def test_a_cluster_that_is_gone_is_forgotten_and_its_machines_come_back() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.world.network.cut("s1", "c1")
        whole.world.board.break_streams("c1")
        await whole.until(lambda: not whole.shard.sessions.connected("c1"), 60.0)
        await asyncio.sleep(120.0)
        assert whole.bound() == 4, "silence alone takes nothing"
        whole.world.monitor.excuse("c1", whole.loop.time())
        await Facade(whole.shard).forget_cluster("c1")
        await met(whole, 0)
        assert whole.metric("reclaims_unforced_total") == 0

    live(setting(), story)
