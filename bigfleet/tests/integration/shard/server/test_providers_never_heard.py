"""A shard that starts without one of its providers knows a part of its machines.

What it does not see may serve what looks unmet: so it may buy, after a while, and it takes nothing
from anybody until every provider was listed once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from bigfleet.model import CapacityType
from sim.drawing import ProviderPlan
from whole.living import Setting, Whole, cluster, live, offers, work

Log = pytest.LogCaptureFixture
HUMBLE = replace(cluster("c1", 3), joins_after=60.0)
"""Comes second: the other one has taken the cheaper machines by then."""
IMPORTANT = replace(cluster("c2", 3), replicas=((work("c2/w", priority=1_000_000), 3),))


def owned(name: str, price: float, speculative: int = 0) -> ProviderPlan:
    """A provider of three hosts, and slots to buy."""
    hosts = offers(3, CapacityType.RESERVED, price)
    return ProviderPlan(name, (*hosts, *offers(speculative, CapacityType.ON_DEMAND, 1.0)))


def setting(speculative: int = 0) -> Setting:
    """The important cluster lives on p1, the humble one on p2."""
    return Setting([owned("p1", 0.1), owned("p2", 0.5, speculative)], [IMPORTANT, HUMBLE])


async def both_met(whole: Whole) -> None:
    await whole.until(
        lambda: whole.bound("c1") == 3 and whole.bound("c2") == 3, 600.0, "six bound machines"
    )


async def restart_without(whole: Whole, name: str) -> None:
    """kill -9, and the provider does not answer the next life."""
    whole.world.network.cut("s1", name)
    await whole.restart()
    await asyncio.sleep(120.0)
    assert not whole.shard.not_ready()
    assert whole.shard.unheard() == [name]


def test_nothing_is_preempted_for_needs_that_unheard_machines_meet(caplog: Log) -> None:
    caplog.set_level(logging.WARNING)

    async def story(whole: Whole) -> None:
        await both_met(whole)
        await restart_without(whole, "p1")
        assert not whole.world.monitor.counts.get("Preempt")
        # What was decided and held back can be seen, and is counted.
        assert whole.metric("actions_suppressed_total", kind="Preempt") > 0
        seen, _ = whole.shard.executor.decisions.since(0)
        assert {d.outcome for d in seen if d.kind == "Preempt"} == {"provider_unheard"}
        whole.world.network.repair("s1", "p1")
        await both_met(whole)
        await asyncio.sleep(120.0)
        assert not whole.shard.unheard()
        assert not whole.world.monitor.counts.get("Preempt")
        assert not whole.world.monitor.counts.get("Reclaim")

    live(setting(), story)
    assert any("nothing is taken from clusters until" in r.getMessage() for r in caplog.records)


def test_growth_does_not_wait_for_a_provider_that_never_answers() -> None:
    async def story(whole: Whole) -> None:
        await both_met(whole)
        await restart_without(whole, "p1")
        whole.scale(4, "c1")
        await whole.until(lambda: whole.bound("c1") == 4, 120.0, "a fourth machine")
        assert not whole.world.monitor.counts.get("Preempt")

    # Three of the five are bought for the important cluster, whose machines no process sees.
    live(setting(speculative=5), story)


def test_a_shrinking_cluster_keeps_its_machines_until_all_are_heard() -> None:
    async def story(whole: Whole) -> None:
        await both_met(whole)
        await restart_without(whole, "p1")
        whole.scale(1, "c1")
        await asyncio.sleep(180.0)
        assert not whole.world.monitor.counts.get("Reclaim")
        whole.world.network.repair("s1", "p1")
        await whole.until(lambda: whole.bound("c1") == 1, 1200.0, "two reclaims")

    live(setting(), story)


def test_other_shards_lose_nothing_for_what_a_partial_view_lacks() -> None:
    async def story(whole: Whole) -> None:
        await both_met(whole)
        await restart_without(whole, "p1")
        await asyncio.sleep(300.0)
        oldest = max(lack.age_cycles for lack in whole.shard.outputs.ledger.reported())
        assert oldest > 12
        assert max(lack.age_cycles for lack in whole.shard._shortfalls()) == 12

    live(setting(), story)
