"""What a cycle decides on: machines in a back-off are left out, what is known of clusters."""

from __future__ import annotations

import asyncio

from bigfleet.decision import Carry
from bigfleet.shard.decide.inputs import bound_capacity, configured_per_cluster
from sim.provider import ModelProvider
from sim.slots import Kind, S
from whole.living import GI, Setting, Whole, cluster, live, provider


def setting(idle: int = 10, speculative: int = 0, replicas: int = 4) -> Setting:
    return Setting([provider("p1", idle, speculative)], [cluster(replicas=replicas)])


async def met(whole: Whole, replicas: int = 4) -> None:
    await whole.until(lambda: whole.bound() == replicas, 300.0, f"{replicas} bound machines")


def left_out(whole: Whole) -> set[str]:
    return {machine.id for machine in whole.shard.book if machine.is_kept_out}


def test_machines_are_left_out_while_they_wait_after_a_failure_and_come_back() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        inputs, failures = whole.shard._inputs, whole.shard.executor.failures
        free = next(m.id for m in whole.shard.book if m.state is S.IDLE)
        failures.action_failed(free)
        await inputs.merge()
        assert left_out(whole) == {free}
        await asyncio.sleep(10.0)
        await inputs.merge()
        assert left_out(whole) == set()

    live(setting(), story)


def test_a_machine_a_person_keeps_out_stays_out_when_its_wait_is_over() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        shard = whole.shard
        free = next(m.id for m in shard.book if m.state is S.IDLE)
        shard.executor.failures.action_failed(free)
        await shard._inputs.merge()
        await shard.excluded.set(free, True)
        await asyncio.sleep(20.0)
        await shard._inputs.merge()
        assert left_out(whole) == {free}

    live(setting(), story)


def test_a_bound_machine_is_never_left_out() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        bound = whole.shard.book.bound("c1")[0]
        whole.shard.executor.failures.action_failed(bound)
        await whole.shard._inputs.merge()
        assert left_out(whole) == set()

    live(setting(), story)


def test_a_provider_that_is_not_asked_any_more_has_no_age() -> None:
    def ages(whole: Whole) -> set[str]:
        return {
            sample.labels["provider"]
            for family in whole.shard.metrics.registry.collect()
            for sample in family.samples
            if sample.name.endswith(("provider_reconcile_age_seconds", "provider_removals_held"))
        }

    async def story(whole: Whole) -> None:
        await met(whole)
        assert ages(whole) == {"p1", "p2"}
        kept = [client.site for client in whole.shard.providers if client.name == "p1"]
        await whole.shard.providers.use(kept)
        whole.shard.lister.providers_changed()
        await asyncio.sleep(30.0)
        # It would grow forever, and a person be paged for a provider that was removed.
        assert ages(whole) == {"p1"}

    live(Setting([provider("p1", 10), provider("p2", 0)], [cluster(replicas=4)]), story)


def test_facts_say_who_reported_and_who_cannot_be_served() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        demand = await whole.shard._inputs.demand(Carry())
        fact = demand.facts["c1"]
        assert (fact.reported, fact.blocked) == (True, False)
        whole.world.network.cut("s1", "c1")
        whole.world.board.break_streams("c1")
        await whole.until(lambda: not whole.shard.sessions.connected("c1"), 60.0)
        fact = (await whole.shard._inputs.demand(Carry())).facts["c1"]
        assert (fact.reported, fact.blocked) == (True, True)
        backed_off = Carry().with_bootstrap_failure("c1", whole.shard.world.clock.now())
        whole.world.network.repair_all()
        await whole.until(lambda: whole.shard.sessions.connected("c1"), 120.0)
        fact = (await whole.shard._inputs.demand(backed_off)).facts["c1"]
        assert fact.blocked

    live(setting(), story)


def test_the_policy_of_a_cycle_knows_pause_and_budget() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        policy = whole.shard._inputs.policy()
        assert policy.reclaim_budget == {"c1": 1}
        assert not policy.paused
        await whole.shard.pause.pause("to look")
        assert whole.shard._inputs.policy().paused

    live(setting(), story)


def test_losses_are_merged_counted_and_served_again() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        model: ModelProvider = whole.provider
        model.lose_host(next(slot for slot in model.slots.values() if slot.cluster))
        await whole.until(
            lambda: whole.metric("machines_lost_total", capacity_type="BareMetal") == 1, 30.0
        )
        await met(whole)

    live(setting(), story)


def test_a_failed_create_is_carried_into_the_next_decision() -> None:
    async def story(whole: Whole) -> None:
        whole.provider.habits.refused_create = "OutOfCapacity"
        await whole.until(lambda: whole.metric("stockouts_cooling") > 0, 120.0, "a stock-out")
        whole.provider.habits.refused_create = ""
        await met(whole)

    live(setting(idle=0, speculative=10), story)


def test_what_a_cluster_has_is_counted_from_columns() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        book = whole.shard.book
        assert configured_per_cluster(book) == {"c1": 4}
        assert bound_capacity(book, "c1") == {
            "cpu": 16.0,
            "memory": 64.0 * GI / 1000,
            "pods": 440.0,
        }
        assert bound_capacity(book, "unknown") == {}

    live(setting(), story)


def test_a_drain_is_remembered_for_choosing_victims() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.scale(3)
        await whole.until(lambda: bool(whole.shard.cycle.carry.drain_seconds), 300.0, "a drain")
        assert whole.provider.habits.seconds[Kind.DRAIN]

    live(setting(), story)


def test_the_age_of_a_providers_list_stays_low_while_nothing_changes() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        ages = []
        for _ in range(60):
            await asyncio.sleep(20.0)
            ages.append(whole.metric("provider_reconcile_age_seconds", provider="p1", region="r1"))
        assert max(ages) < 30.0

    live(setting(), story)
