"""Whatever an operator does, others are served, its demand stays as it was, and it is said.

Each story runs a whole shard on virtual time with a cluster that misbehaves and one that does not.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from bigfleet.model import Profile, Requirement, RequirementOperator
from bigfleet.shard.server.settings import ShardConfig
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.behaviour import Behaviour, Span
from bigfleet_lab.simcluster.faults import Garbage
from bigfleet_lab.simcluster.workload import WorkObject
from whole.living import GI, QUIET, Setting, Whole, cluster, live, provider, work

Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _all_is_heard(caplog: Log) -> None:
    caplog.set_level(logging.INFO)


def setting(behaviour: Behaviour = QUIET, outbox: int = 8192) -> Setting:
    def tune(tuning: ShardConfig) -> ShardConfig:
        return ShardConfig(tuning.shard_id, providers=tuning.providers, outbox_bound=outbox)

    bad = cluster("bad", 8, behaviour=behaviour)
    return Setting([provider("p1", 40)], [bad, cluster("good", 8)], tune)


def said(log: Log, words: str) -> list[str]:
    return [record.getMessage() for record in log.records if record.message.startswith(words)]


async def met(whole: Whole, good: int = 8, bad: int = 8) -> None:
    await whole.until(lambda: whole.bound("good") == good, 120.0, "what the good cluster wants")
    await whole.until(lambda: whole.bound("bad") == bad, 120.0, "what the bad cluster wants")


def nothing_was_taken(whole: Whole) -> None:
    assert not whole.world.monitor.counts.get("Reclaim")
    assert whole.metric("reclaims_unforced_total") == 0
    assert (whole.bound("good"), whole.bound("bad")) == (8, 8)


def test_wrong_frames_leave_the_demand_as_it_was(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        for kind in Garbage:
            await whole.until(lambda: whole.operator("bad").connected, 60.0, "a session")
            session = whole.operator("bad").session
            assert session is not None
            session.send_garbage(kind)
            await asyncio.sleep(15.0)
        assert whole.metric("rollups_rejected_total", cluster="bad") >= 3
        assert whole.metric("rollups_rejected_total", cluster="good") == 0
        await asyncio.sleep(60.0)
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "rollup rejected at ingest validation; keeping last-known-good demand")
    assert said(caplog, "operator message handling")
    assert said(caplog, "operator session recv error")


def test_an_operator_that_stops_reading_is_let_go_and_comes_back(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        removed = whole.metric("session_lifecycle_total", event="removed")
        whole.operator("bad").cluster.faults.stop_reading()
        workload = whole.operator("bad").cluster.workload
        for replicas in range(200):
            # Every roll-up is answered, and no one takes the answers.
            workload.scale(workload.names[0], 8 + replicas % 2)
            await asyncio.sleep(2.0)
        assert whole.metric("session_lifecycle_total", event="removed") > removed
        assert whole.operator("good").connected
        whole.operator("bad").cluster.faults.heal()
        whole.scale(8, "bad")
        await whole.until(lambda: whole.operator("bad").connected, 120.0, "a new session")
        await asyncio.sleep(60.0)
        assert whole.bound("good") == 8
        assert whole.metric("reclaims_unforced_total") == 0

    live(setting(outbox=64), story)
    assert said(caplog, "operator session closed")


def test_a_storm_of_reconnects_ends_with_one_session_each(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        for _ in range(100):
            whole.operator("bad").disconnect()
            await asyncio.sleep(0.7)
        await whole.until(lambda: whole.operator("bad").connected, 60.0, "a session")
        assert whole.metric("active_sessions") == 2
        assert whole.metric("session_lifecycle_total", event="installed") > 20
        await asyncio.sleep(60.0)
        nothing_was_taken(whole)

    live(setting(), story)
    assert len(said(caplog, "operator session opened")) > 20


def test_a_cluster_that_claims_the_id_of_another_has_no_say_in_it(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        faults = whole.operator("bad").cluster.faults
        faults.rollup_id = "good"
        whole.scale(9, "bad")
        await asyncio.sleep(60.0)
        assert whole.metric("rollups_rejected_total", cluster="bad") > 0
        faults.heal()
        whole.scale(8, "bad")
        await asyncio.sleep(60.0)
        nothing_was_taken(whole)

    live(setting(), story)
    assert any("send it in a session of its own" in str(vars(r)) for r in caplog.records)


class Certified:
    """A stream with a certificate, from which one Hello comes."""

    def __init__(self, identity: str, cluster_id: str) -> None:
        self.identity = identity
        self._frames = [pb.OperatorMessage(hello=pb.Hello(cluster_id=cluster_id))]

    async def receive(self) -> pb.OperatorMessage | None:
        return self._frames.pop() if self._frames else None

    async def send(self, message: pb.ShardMessage) -> None:
        raise AssertionError("nothing is said to a liar")


def test_a_certificate_of_another_cluster_is_turned_away(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        with pytest.raises(Exception, match="cluster 'good' needs"):
            await whole.shard.sessions.serve(Certified("bigfleet://cluster/bad", "good"))
        assert whole.metric("session_identity_rejected_total") == 1
        assert whole.operator("good").connected
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "operator session identity rejected")


def test_an_operator_that_lost_its_memory_while_the_shard_was_down_is_not_believed() -> None:
    async def story(whole: Whole) -> None:
        await met(whole, bad=20)
        # What it says first, before any provider was listed again, is a twentieth of what it has.
        whole.provider.stop()
        whole.scale(1, "bad")
        await whole.restart()
        await whole.until(lambda: whole.shard.sessions.connected("bad"), 60.0, "a session")
        await asyncio.sleep(3.0)
        whole.provider.start()
        await whole.until(whole.shard.lister.all_first_merged, 60.0, "the first List")
        await asyncio.sleep(50.0)
        assert whole.metric("rollup_quarantined", cluster="bad") == 1
        assert whole.metric("rollup_quarantined", cluster="good") == 0
        assert whole.bound("bad") == 20
        assert not whole.world.monitor.counts.get("Reclaim")

    live(Setting([provider("p1", 40)], [cluster("bad", 20), cluster("good", 8)]), story)


def test_a_mute_operator_keeps_no_machine_from_others() -> None:
    async def story(whole: Whole) -> None:
        await whole.until(lambda: whole.bound("good") == 8, 120.0, "what the good cluster wants")
        whole.scale(600, "bad")
        await whole.until(lambda: whole.shard.executor.depth > 400, 60.0, "a queue of bootstraps")
        whole.scale(9, "good")
        await whole.until(lambda: whole.bound("good") == 9, 25.0, "one more machine")

    mute = Behaviour(rollup_seconds=10.0, bootstrap_seconds=Span(10_000.0, 10_000.0))
    many = Setting([provider("p1", 640)], [cluster("bad", 0, behaviour=mute), cluster("good", 8)])
    live(many, story)


def test_rows_that_compare_numbers_stay_while_the_first_lists_are_awaited() -> None:
    """An operator that hears no acknowledgement would take the shard for an older one."""
    profile = [Requirement.of("cores", RequirementOperator.GT, ["1"])]
    gt = WorkObject("bad/gt", Profile.of(profile, priority=100), {"cpu": 4000, "memory": 4 * GI})
    wants = replace(cluster("bad"), replicas=((gt, 3), (work("bad/w"), 3)))

    async def story(whole: Whole) -> None:
        await whole.until(lambda: whole.bound("bad") >= 3, 300.0, "what the cluster wants")
        whole.world.providers["p2"].stop()
        await whole.restart()
        workload = whole.operator("bad").cluster.workload
        for second in range(35):
            workload.scale("bad/w", 3 + second % 2)
            await asyncio.sleep(1.0)
        await asyncio.sleep(60.0)
        assert len(whole.shard.needs.rows("bad")) == 2

    live(Setting([provider("p1", 20), provider("p2", 5)], [wants]), story)
