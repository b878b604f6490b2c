"""Where decisions go: rails and queue first, then everybody who shows what was decided."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from bigfleet.model.reasons import FAILING_CREATES as FAILING
from bigfleet.shard.act.rails import RailSettings
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.server.settings import ShardConfig
from bigfleet_api.v1alpha1 import shardread_pb2
from whole.living import Setting, Whole, cluster, live, provider

F = CreateFailure


def setting(replicas: int = 4, **rails: object) -> Setting:
    def tune(tuning: ShardConfig) -> ShardConfig:
        return replace(tuning, rails=RailSettings(**rails))  # type: ignore[arg-type]

    return Setting([provider("p1", 10)], [cluster(replicas=replicas)], tune)


async def met(whole: Whole, replicas: int = 4) -> None:
    await whole.until(lambda: whole.bound() == replicas, 300.0, f"{replicas} bound machines")


def test_a_cycle_is_shown_to_everybody() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        await asyncio.sleep(30.0)
        outputs = whole.shard.outputs
        assert outputs.views is not None
        assert outputs.views.plan.verdicts.satisfied.all()
        assert whole.metric("shortfalls") == 0
        assert whole.metric("demand_machines", interruption_penalty_bucket="0") == 1
        cluster_side = whole.operator().cluster
        assert all(verdict.satisfied for verdict in cluster_side.verdicts.values())
        assert cluster_side.hints
        last = list(outputs.cycles.since(0))[-1]
        assert last.cycle == whole.shard.cycle.number
        assert whole.metric("cycles_total", trigger="wakeup") > 0
        assert whole.metric("start_to_first_decision_seconds") > 0

    live(setting(), story)


def test_how_long_a_cluster_waits_for_something_new_is_measured_once() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        await asyncio.sleep(30.0)
        assert whole.metric("provisioning_latency_seconds_count") == 1
        waited = whole.metric("provisioning_latency_seconds_sum")
        assert 0 < waited < 60.0
        # More of the same is not asked for the first time, and after a restart nothing is.
        whole.scale(6)
        await met(whole, 6)
        assert whole.metric("provisioning_latency_seconds_count") == 1
        await whole.restart()
        await met(whole, 6)
        await asyncio.sleep(60.0)
        whole.scale(7)
        await met(whole, 7)
        assert whole.metric("provisioning_latency_seconds_count") == 0

    live(setting(), story)


def test_what_exceeds_a_cycles_limit_follows_at_once() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        assert whole.metric("actions_deferred_total") > 0
        assert whole.loop.time() < 60.0

    live(setting(replicas=8, max_actions=1), story)


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_exceeds_the_limit_waits_for_the_tick_while_nothing_is_executed(
    dry_run: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(whole: Whole) -> None:
        if not dry_run:
            await whole.shard.pause.pause("maintenance")
        await asyncio.sleep(30.0)
        begin = whole.shard.cycle.number
        await asyncio.sleep(60.0)
        assert whole.metric("actions_deferred_total") > 0
        assert whole.shard.cycle.number - begin <= 14
        said = [r.message for r in caplog.records if r.message.startswith("dry-run")]
        assert len(said) == (2 if dry_run else 0)

    with caplog.at_level(logging.INFO):
        live(setting(replicas=8, max_actions=2, dry_run=dry_run), story)


def test_rows_that_came_and_went_are_counted_once() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        assert whole.metric("cycle_changes_total", kind="need_added") == 1
        whole.scale(5)
        await met(whole, 5)
        assert whole.metric("cycle_changes_total", kind="need_changed") == 1
        assert whole.metric("cycle_changes_total", kind="machine_changed") >= 4

    live(setting(), story)


def test_a_new_session_is_told_again() -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        await asyncio.sleep(15.0)
        told = whole.operator().cluster
        told.verdicts.clear()
        told.hints.clear()
        whole.operator().disconnect()
        await whole.until(lambda: bool(told.verdicts and told.hints), 60.0, "hints and verdicts")

    live(setting(), story)


def test_a_shortfall_that_gets_old_escalates() -> None:
    async def story(whole: Whole) -> None:
        asked: list[float] = []
        whole.shard.outputs.escalate = lambda: asked.append(whole.loop.time())
        whole.scale(20)
        await whole.until(lambda: whole.metric("shortfalls") == 1, 60.0, "a shortfall")
        await whole.until(lambda: bool(asked), 120.0, "an escalation")
        aged = sum(
            whole.metric("shortfalls_aged", bucket=b) for b in ("1-9", "10-59", "60-299", "300+")
        )
        assert aged == 1

    live(setting(), story)


@pytest.mark.parametrize(
    ("word", "cause", "reason"),
    [
        ("OutOfCapacity", F.OUT_OF_CAPACITY, shardread_pb2.UNMET_REASON_STOCK_OUT),
        ("QuotaExceeded", F.QUOTA, shardread_pb2.UNMET_REASON_QUOTA),
        ("Unauthorized", F.BAD_REQUEST, shardread_pb2.UNMET_REASON_STOCK_OUT),
        ("InvalidRequest", F.BAD_REQUEST, shardread_pb2.UNMET_REASON_STOCK_OUT),
        ("Throttled", F.THROTTLED, shardread_pb2.UNMET_REASON_STOCK_OUT),
        ("Unavailable", F.UNAVAILABLE, shardread_pb2.UNMET_REASON_STOCK_OUT),
    ],
)
@pytest.mark.parametrize("slots", [3, pytest.param(60, marks=pytest.mark.exhaustive)])
def test_needs_whose_creates_fail_are_unmet_escalate_and_say_why(
    word: str, cause: CreateFailure, reason: int, slots: int
) -> None:
    async def story(whole: Whole) -> None:
        asked: list[float] = []
        outputs = whole.shard.outputs
        outputs.escalate = lambda: asked.append(whole.loop.time())
        whole.provider.habits.refused_create = word
        # By then each of the three offerings was tried twice, whatever the wait between.
        await asyncio.sleep(600.0)
        for _ in range(45):
            await asyncio.sleep(2.0)
            assert outputs.views is not None
            (row,) = outputs.views.rows().tolist()
            view = outputs.views.view(row)
            assert (view.satisfied, view.unmet_reason) == (False, reason)
            assert view.residual_deficit.resources["cpu"] == "12"
            assert whole.metric("shortfalls") == 1
        assert asked
        assert list(outputs.cycles.since(0))[-1].shortfalls == 1
        (verdict,) = whole.operator().cluster.verdicts.values()
        assert verdict.message.startswith(f"{FAILING[cause]} ({word}: the account refuses)")
        whole.provider.habits.refused_create = ""
        await whole.until(lambda: whole.bound() == 3, 1200.0, "3 bound machines")
        await asyncio.sleep(30.0)
        assert whole.metric("shortfalls") == 0

    live(Setting([provider("p1", 0, slots)], [cluster(replicas=3)]), story)


def test_a_storm_of_roll_ups_does_not_make_a_shortfall_old() -> None:
    async def story(whole: Whole) -> None:
        whole.scale(20)
        await whole.until(lambda: whole.metric("shortfalls") == 1, 60.0, "a shortfall")
        for _ in range(40):
            whole.shard.pace.wake()
            await asyncio.sleep(0.5)
        (lack,) = whole.shard.outputs.ledger.reported()
        assert lack.age_cycles in (2, 3)

    live(setting(), story)


def test_what_a_pause_and_a_dry_run_hold_back_can_be_watched() -> None:
    async def story(whole: Whole) -> None:
        await asyncio.sleep(60.0)
        seen, _ = whole.shard.executor.decisions.since(0)
        assert [decision.outcome for decision in seen] == ["dry_run"] * 4
        assert {decision.kind for decision in seen} == {"Bootstrap"}
        await whole.shard.pause.pause("maintenance")
        await asyncio.sleep(60.0)
        seen, _ = whole.shard.executor.decisions.since(4)
        assert [decision.outcome for decision in seen] == ["suppressed"] * 4
        assert whole.bound() == 0

    live(setting(dry_run=True), story)
