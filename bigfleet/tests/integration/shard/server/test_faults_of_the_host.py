"""A full disk and a clock that jumps: nothing is begun that could not be written down, nothing is
taken away because of the time, and no age is negative."""

from __future__ import annotations

import asyncio
import errno
import logging
from random import Random

import pytest
from prometheus_client.core import REGISTRY

from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.server.shard import Shard
from bigfleet.shard.server.status import Facade
from sim.ports import DiskFullError, SimDisk
from sim.slots import S
from whole.living import Setting, Whole, cluster, live, provider

Log = pytest.LogCaptureFixture
DAY = 86_400.0


@pytest.fixture(autouse=True)
def _all_is_heard(caplog: Log) -> None:
    caplog.set_level(logging.INFO)


def setting(**rest: object) -> Setting:
    there = [provider("p1", 20, 10)]
    return Setting(there, [cluster(replicas=8)], **rest)  # type: ignore[arg-type]


def said(log: Log, words: str) -> list[str]:
    return [record.getMessage() for record in log.records if record.message.startswith(words)]


async def met(whole: Whole, replicas: int = 8) -> None:
    await whole.until(lambda: whole.bound() == replicas, 900.0, f"{replicas} bound machines")


def test_without_room_for_its_epoch_a_shard_does_not_start() -> None:
    async def story(whole: Whole) -> None:
        life = whole.world.shard
        disk = SimDisk(Random(1))
        disk.full = True
        ports = life._ports()  # type: ignore[attr-defined]
        ports = type(ports)(**{**vars(ports), "disk": disk})
        with pytest.raises(DiskFullError, match="No space left"):
            await Shard.open(life._tuning(), ports)  # type: ignore[attr-defined]

    live(setting(), story)


def test_an_audit_log_without_room_loses_records_and_nothing_else(caplog: Log) -> None:
    room = [False]
    written: list[bytes] = []

    def write(lines: bytes) -> None:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(lines)

    async def story(whole: Whole) -> None:
        await met(whole)
        audit = whole.shard.world.audit
        assert audit is not None
        await whole.until(lambda: audit.lost >= 8, 60.0, "lost records")
        rails = Facade(whole.shard).state().rails
        assert rails == [f"audit log: {audit.lost} records lost, 0 dropped"]
        room[0] = True
        whole.scale(10)
        await met(whole, 10)
        await whole.until(lambda: bool(written), 60.0, "lines")

    live(setting(audit=write), story)
    assert len(said(caplog, "audit log cannot be written")) == 1
    assert said(caplog, "audit log is written again")


def test_on_a_full_disk_no_machine_is_made_or_taken_away_until_there_is_room(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.world.disk.full = True
        whole.scale(24)
        await asyncio.sleep(120.0)
        made = [slot for slot in whole.provider.slots.values() if slot.state is not S.SPECULATIVE]
        assert len(made) == 20, "a machine was created without a line in the journal"
        failed = sum(
            whole.metric("action_execute_outcomes_total", kind="Provision", outcome=outcome)
            for outcome in ("other", "transition_error", "stale_state")
        )
        assert failed > 0
        assert whole.operator().connected
        (rail,) = Facade(whole.shard).state().rails
        assert rail.startswith("journal cannot be written: ")
        whole.world.disk.full = False
        await met(whole, 24)
        assert Facade(whole.shard).state().rails == []

    live(setting(), story)
    assert said(caplog, "journal cannot be written")


@pytest.mark.parametrize("jumps", [(DAY,), (-DAY,), (DAY, -2 * DAY, DAY), (-30.0, 45.0)])
def test_a_clock_that_jumps_takes_nothing_from_anybody(jumps: tuple[float, ...]) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        for seconds in jumps:
            # In the middle of things: machines are on their way, others have been idle for a while.
            whole.scale(10)
            await asyncio.sleep(0.4)
            whole.world.shard_clock.jump(seconds)
            old = [text for text in ages(whole) if "_age_" in text[0] and text[1] > 3600.0]
            assert not old, "the clock made something old"
            await asyncio.sleep(90.0)
            assert whole.bound() == 10
            negative = [text for text in ages(whole) if text[1] < 0]
            assert not negative, negative
        counts = whole.world.monitor.counts
        assert not counts.get("Reclaim")
        assert not counts.get("Preempt")
        assert whole.metric("reclaims_unforced_total") == 0

    live(setting(), story)


def test_a_clock_that_went_ahead_ends_no_hold_and_no_deadline(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        before = dict(whole.world.monitor.counts)
        nodes = whole.operator().cluster.nodes
        whole.operator().cluster.lose_node(min(node.machine_id for node in nodes))
        whole.scale(4)
        # A dip that is shorter than the hold, and a node that has not been Ready for a moment.
        await asyncio.sleep(10.0)
        whole.world.shard_clock.jump(DAY)
        await asyncio.sleep(10.0)
        whole.scale(8)
        await asyncio.sleep(120.0)
        assert whole.world.monitor.counts == before

    live(setting(), story)
    assert said(caplog, "wall clock jumped ahead")


def test_a_clock_that_went_back_holds_nothing_for_as_long_as_it_was_wrong(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.scale(4)
        # Four machines are unclaimed for a while, not for long enough to be taken back.
        await asyncio.sleep(20.0)
        whole.world.shard_clock.jump(-DAY)
        await met(whole, 4)

    live(setting(), story)
    assert said(caplog, "wall clock jumped back")


def test_a_clock_that_went_back_keeps_no_cluster_off_an_offering_or_a_cluster() -> None:
    async def story(whole: Whole) -> None:
        whole.world.network.cut("s1", "c1")
        await whole.until(lambda: len(whole.shard.book) == 30, 60.0, "a List")
        clock, failures = whole.shard.world.clock, whole.shard.executor.failures
        failures.bootstrap_failed("c1")
        one = next(iter(whole.shard.book))
        failures.create_failed(one, CreateFailure.OUT_OF_CAPACITY, "no more of these")
        await asyncio.sleep(20.0)
        assert whole.metric("stockouts_cooling") == 1
        whole.world.shard_clock.jump(-DAY)
        await asyncio.sleep(20.0)
        assert whole.metric("stockouts_cooling") == 0
        assert not whole.shard.cycle.carry.backed_off(clock.now())

    live(setting(), story)


def ages(whole: Whole) -> list[tuple[str, float]]:
    """Everything a shard shows that is a duration."""
    assert whole.shard.metrics.registry is not REGISTRY
    return [
        (f"{sample.name} {sample.labels}", sample.value)
        for family in whole.shard.metrics.registry.collect()
        for sample in family.samples
        if "_age_" in sample.name or sample.name.endswith(("_seconds", "_seconds_sum"))
    ]
