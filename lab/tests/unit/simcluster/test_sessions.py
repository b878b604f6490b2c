"""A cluster's duties on the stream, against a scripted shard on virtual time."""

import asyncio
from itertools import pairwise

import pytest

from bigfleet.model import Profile, Requirement, RequirementOperator
from bigfleet.wire.session import StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster import Behaviour, SimOperator, Workload
from bigfleet_lab.simcluster.behaviour import Span
from bigfleet_lab.simcluster.demand_changes import Change
from bigfleet_lab.simcluster.faults import Garbage
from scripted_shard import (
    S,
    ScriptedShard,
    cordoned,
    deployment,
    node,
    play,
)


def test_a_session_begins_with_hello_and_a_complete_rollup() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        rollup = (await shard.frame("rollup")).rollup
        hello = shard.frames[0][1].hello
        assert (hello.cluster_id, hello.protocol_version) == ("c-1", "v1alpha1")
        assert hello.software_version
        assert rollup.cluster_id == "c-1"
        assert [dict(row.aggregate_resources) for row in rollup.needs] == [{"cpu": "2"}]
        assert dict(rollup.needs[0].min_unit) == {"cpu": "1"}

    play(scene)


def test_rollups_come_every_interval_with_growing_timestamps() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await asyncio.sleep(35)
        rollups = shard.of_kind("rollup")
        assert [round(at) for at, _ in rollups] == [0, 10, 20, 30]
        stamps = [message.rollup.timestamp_unix_nanos for _, message in rollups]
        assert stamps == sorted(set(stamps))
        assert operator.cluster.stats.rollups_acknowledged == 4
        assert len(operator.cluster.stats.latencies) == 4

    play(scene)


def test_changed_demand_is_told_a_moment_later_and_at_most_once_a_second() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await asyncio.sleep(5)
        for replicas in range(3, 13):
            operator.cluster.workload.scale("web", replicas)
            await asyncio.sleep(0.25)
        times = [at for at, _ in shard.of_kind("rollup")]
        assert times[1] == 5.3
        assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))
        await asyncio.sleep(2)
        told = shard.of_kind("rollup")[-1][1].rollup
        assert told.needs[0].aggregate_resources["cpu"] == "12"

    play(scene, Behaviour())


def test_demand_that_fell_to_nothing_is_still_a_rollup() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        operator.cluster.workload.remove("web")
        message = await shard.frame("rollup", 2)
        assert message.HasField("rollup")
        assert not message.rollup.needs

    play(scene)


def test_pods_run_on_a_ready_node_and_stay_demand() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        assert operator.cluster.placing.running("web") == 2
        rollup = (await shard.frame("rollup", 2)).rollup
        assert rollup.needs[0].aggregate_resources["cpu"] == "2"
        seen = [one.node_observations for _, one in shard.of_kind("node_observations")]
        assert seen[0].full
        last = seen[-1].nodes[0]
        assert (last.node_name, last.machine_id, last.ready, last.pods) == (
            "host-m-1", "m-1", True, 2,
        )  # fmt: skip
        assert last.provider_id.rpartition("/")[2] == "host-m-1"

    play(scene)


def test_a_shard_without_additions_gets_no_observations() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        shard.additions = False
        await shard.frame("rollup")
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(100)
        assert not shard.of_kind("node_observations")

    play(scene)


def test_a_bootstrap_request_is_answered_with_a_blob_and_its_life() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        await shard.send(bootstrap_request=pb.BootstrapRequest(request_id="r-1", cluster_id="c-1"))
        answer = (await shard.frame("bootstrap_response")).bootstrap_response
        assert (answer.request_id, answer.ttl_seconds, answer.error) == ("r-1", 900, "")
        assert answer.user_data
        operator.cluster.set_behaviour(bootstrap_error_rate=1.0)
        await shard.send(bootstrap_request=pb.BootstrapRequest(request_id="r-2", cluster_id="c-1"))
        refused = (await shard.frame("bootstrap_response", 2)).bootstrap_response
        assert refused.request_id == "r-2"
        assert refused.error

    play(scene)


def test_a_reclaim_is_acknowledged_at_once_and_again_when_the_node_is_empty() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        cluster = operator.cluster
        await shard.frame("rollup")
        for machine in ("m-1", "m-2"):
            await shard.send(node_state_update=node(machine, S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        holder = next(one for one in cluster.nodes if one.pods)
        instruction = pb.ReclaimInstruction(
            instruction_id="i-1", nodes=[holder.name], grace_period_seconds=600
        )
        await shard.send(reclaim_instruction=instruction)
        first = (await shard.frame("reclaim_ack")).reclaim_ack
        assert (first.nodes_started, first.nodes_drained) == (1, 0)
        assert holder.cordoned
        assert holder.pods
        second = (await shard.frame("reclaim_ack", 2)).reclaim_ack
        assert (second.instruction_id, second.nodes_drained, list(second.nodes_left)) == (
            "i-1", 1, [],
        )  # fmt: skip
        await asyncio.sleep(1)
        assert not holder.pods
        assert cluster.placing.running("web") == 2, "evicted pods run elsewhere"

    play(scene)


def test_a_node_that_cannot_be_emptied_is_named_when_the_grace_is_over() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        instruction = pb.ReclaimInstruction(
            instruction_id="i-1", nodes=["m-1"], grace_period_seconds=30
        )
        began = asyncio.get_running_loop().time()
        await shard.send(reclaim_instruction=instruction)
        ack = (await shard.frame("reclaim_ack", 2)).reclaim_ack
        assert (ack.nodes_drained, list(ack.nodes_left)) == (0, ["host-m-1"])
        assert asyncio.get_running_loop().time() - began == 30

    play(scene, Behaviour(prompt_seconds=0, stuck_drain_rate=1.0))


def test_a_cancelled_reclaim_gives_the_node_back() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        for cancel in (False, True):
            await shard.send(
                reclaim_instruction=pb.ReclaimInstruction(
                    instruction_id="i-1", nodes=["m-1"], grace_period_seconds=600, cancel=cancel
                )
            )
        await asyncio.sleep(10)
        held = operator.cluster.nodes.get("m-1")
        assert held is not None
        assert not held.cordoned
        assert sum(held.pods.values()) == 2
        assert len(shard.of_kind("reclaim_ack")) == 1

    play(scene)


def test_a_drain_that_the_shard_does_not_name_again_is_called_off() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        instruction = pb.ReclaimInstruction(
            instruction_id="i-1", nodes=["m-1"], grace_period_seconds=600
        )
        await shard.send(reclaim_instruction=instruction)
        await shard.frame("reclaim_ack")
        operator.disconnect()
        await shard.frame("hello", 2)
        await shard.send(node_state_update=node("m-1", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(59)
        assert cordoned(operator) == ["m-1"]
        await asyncio.sleep(2)
        assert cordoned(operator) == []
        assert operator.cluster.drains.called_off == 1

    play(scene, Behaviour(prompt_seconds=0, stuck_drain_rate=1.0))


def test_a_node_of_an_earlier_session_that_is_not_confirmed_is_gone() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        for machine in ("m-1", "m-2"):
            await shard.send(node_state_update=node(machine, S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(1)
        operator.disconnect()
        await shard.frame("hello", 2)
        await shard.send(node_state_update=node("m-2", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(130)
        assert [one.machine_id for one in operator.cluster.nodes] == ["m-2"]
        assert operator.cluster.placing.running("web") == 2

    play(scene)


def test_verdicts_and_hints_are_kept_the_newest_of_each() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        for satisfied, count in ((False, 1), (True, 2)):
            verdict = pb.NeedVerdict(profile_fingerprint="f", satisfied=satisfied)
            await shard.send(need_verdicts=pb.NeedVerdicts(verdicts=[verdict]))
            hint = pb.AvailableCapacityUpdate(supersedes_key="k", available_count=count)
            await shard.send(available_capacity=hint)
        await asyncio.sleep(1)
        cluster = operator.cluster
        assert cluster.verdicts["f", "", ""].satisfied
        assert cluster.hints["k"].available_count == 2
        assert (cluster.stats.verdicts, cluster.stats.capacity_hints) == (2, 2)

    play(scene)


def test_reconnecting_backs_off_and_starts_over_after_a_good_session() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        shard.refuse = ["UNAVAILABLE"] * 9
        await shard.frame("rollup")
        gaps = [b - a for a, b in pairwise(shard.opened)]
        bounds = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
        assert all(bound / 2 <= gap <= bound for gap, bound in zip(gaps, bounds, strict=True))
        await asyncio.sleep(1)
        operator.disconnect()
        at = asyncio.get_running_loop().time()
        await shard.frame("hello", 11)
        assert asyncio.get_running_loop().time() - at <= 0.5

    play(scene)


def test_a_session_that_was_replaced_does_not_shorten_the_pause() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        for _ in range(4):
            rollups = len(shard.of_kind("rollup"))
            await shard.frame("rollup", rollups + 1)
            await asyncio.sleep(1)
            # Replaced: the shard ends the stream from outside of its serving.
            shard.streams[-1]._line.end("ABORTED", "a newer session")
            await shard.frame("hello", len(shard.of_kind("hello")) + 1)
        gaps = [b - a for a, b in pairwise(shard.opened)]
        assert gaps[-1] > 2
        assert operator.cluster.stats.sessions_ended["ABORTED"] == 4

    play(scene)


def test_a_silent_cluster_keeps_its_session_and_says_nothing() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        operator.cluster.faults.silent = True
        await shard.send(bootstrap_request=pb.BootstrapRequest(request_id="r", cluster_id="c-1"))
        heard = len(shard.frames)
        await asyncio.sleep(60)
        assert len(shard.frames) == heard
        assert operator.connected
        operator.cluster.faults.heal()
        assert (await shard.frame("bootstrap_response")).bootstrap_response.user_data

    play(scene)


def test_a_cluster_that_stops_reading_is_felt_by_the_shard() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        operator.cluster.faults.stop_reading()

        async def flood() -> None:
            for number in range(200):
                await shard.send(node_state_update=node(f"m-{number}", S.MACHINE_STATE_IDLE))

        flooding = asyncio.create_task(flood())
        await asyncio.sleep(30)
        assert not flooding.done()
        operator.cluster.faults.read_on()
        await flooding

    play(scene)


def test_an_answer_that_finds_the_outbox_full_is_dropped_and_counted() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        operator.cluster.faults.silent = True
        for number in range(300):
            request = pb.BootstrapRequest(request_id=f"r-{number}", cluster_id="c-1")
            await shard.send(bootstrap_request=request)
        await asyncio.sleep(1)
        assert operator.cluster.stats.answers_dropped >= 300 - 256

    play(scene)


def test_a_cluster_can_claim_to_be_another() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        operator.cluster.faults.rollup_id = "c-2"
        assert (await shard.frame("rollup", 2)).rollup.cluster_id == "c-2"
        operator.cluster.faults.hello_id = ""
        operator.disconnect()
        assert (await shard.frame("hello", 2)).hello.cluster_id == ""

    play(scene)


def test_garbage_reaches_the_shard_and_unreadable_bytes_end_the_session() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        for kind in Garbage:
            session = operator.session
            assert session is not None
            session.send_garbage(kind)
            await asyncio.sleep(2)
        assert operator.cluster.stats.sessions_ended["INTERNAL"] == 1
        assert operator.cluster.stats.garbage_sent == len(Garbage)
        empty = [one for _, one in shard.frames if one.WhichOneof("payload") is None]
        assert len(empty) == 2, "one without payload, one with an unknown one"
        assert len(shard.of_kind("hello")) == 3

    play(scene)


def test_a_sudden_shrink_is_told_like_any_other_demand() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        operator.cluster.change(Change.STEP, 0.0)
        assert not (await shard.frame("rollup", 2)).rollup.needs

    play(scene)


def test_rows_an_older_shard_cannot_read_are_left_out_after_three_silences() -> None:
    workload = Workload()
    workload.add(deployment(), 1)
    comparing = Profile.of([Requirement.of("generation", RequirementOperator.GT, ["3"])])
    workload.add(deployment("modern", profile=comparing), 1)

    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        shard.acknowledges = False
        rows = [len((await shard.frame("rollup", n)).rollup.needs) for n in range(1, 6)]
        assert rows == [2, 2, 2, 1, 1]
        operator.disconnect()
        assert len((await shard.frame("rollup", 6)).rollup.needs) == 2, "only for that session"

    play(scene, workload=workload)


def test_the_same_seed_is_the_same_conversation() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> list[bytes]:
        await shard.frame("rollup")
        for number in range(5):
            await shard.send(node_state_update=node(f"m-{number}", S.MACHINE_STATE_CONFIGURED))
        await asyncio.sleep(60)
        return [one.SerializeToString(deterministic=True) for _, one in shard.frames]

    habits = Behaviour(churn=0.5, join_seconds=Span(1, 20), never_ready_rate=0.3)
    assert play(scene, habits) == play(scene, habits)


def test_a_line_that_was_cut_is_an_error_for_the_shard_too() -> None:
    async def scene(shard: ScriptedShard, operator: SimOperator) -> None:
        await shard.frame("rollup")
        stream = shard.streams[-1]
        operator.disconnect()
        with pytest.raises(StreamClosedError) as raised:
            await stream.send(pb.ShardMessage())
        assert raised.value.code == "CANCELLED"
        await shard.frame("hello", 2)

    play(scene)
