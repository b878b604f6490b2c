"""The Events that a node's owner reads before the node is taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bigfleet.operator.drain.notices import reclaim_words
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubefake import FakeApiServer
from kubeobjects import node, pod
from kubestage import Stage, play, until

HOST = "host-m-1"


def one_node(api: FakeApiServer) -> None:
    api.put(node("n-1", provider_id=f"x:///{HOST}"))
    api.put(pod("web-0", node="n-1", phase="Running"))
    api.budgets["default", "web-0"] = 10_000


def instruction(**how: Any) -> pb.ReclaimInstruction:
    given: dict[str, Any] = {
        "instruction_id": "i-1",
        "nodes": ["n-1"],
        "grace_period_seconds": 120,
    } | how
    return pb.ReclaimInstruction(**given)


def events(stage: Stage, reason: str) -> list[dict[str, Any]]:
    return [one for one in stage.api.all("Event") if one["reason"] == reason]


def test_a_node_says_why_it_is_taken_back_and_how_long_its_pods_have() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        reason = pb.RECLAIM_REASON_PREEMPTED
        await stage.shard.send(
            reclaim_instruction=instruction(reason=reason, preemptor_priority=1000)
        )
        await until(lambda: events(stage, "Reclaiming"))
        (event,) = events(stage, "Reclaiming")
        assert event["involvedObject"] | {"uid": ""} == {
            "apiVersion": "v1", "kind": "Node", "name": "n-1", "uid": "",
        }  # fmt: skip
        assert event["type"] == "Warning"
        assert "demand of priority 1000 needs its machine" in event["message"]
        assert "2 min to leave" in event["message"]

    play(scene, one_node)


def test_an_instruction_that_is_repeated_is_one_event_and_a_cancel_is_another() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        for _ in range(3):
            await stage.shard.send(reclaim_instruction=instruction())
        await until(lambda: events(stage, "Reclaiming"))
        await asyncio.sleep(120)
        (event,) = events(stage, "Reclaiming")
        assert event["count"] == 1
        await stage.shard.send(reclaim_instruction=instruction(cancel=True))
        await until(lambda: events(stage, "ReclaimCalledOff"))

    play(scene, one_node)


@pytest.mark.parametrize(
    ("reason", "priority", "words"),
    [
        (pb.RECLAIM_REASON_NOT_NEEDED, 0, "no demand of this cluster needs it"),
        (pb.RECLAIM_REASON_PREEMPTED, 0, "demand of priority 0 needs its machine"),
        (pb.RECLAIM_REASON_ENDING, 0, "its provider has announced the end of its machine"),
        (pb.RECLAIM_REASON_ADMIN, 0, "an administrator drains its machine"),
        (pb.RECLAIM_REASON_OTHER_SHARD, 0, "demand elsewhere in the fleet needs its machine"),
        (pb.RECLAIM_REASON_UNSPECIFIED, 7, "demand of priority 7 needs its machine"),
        (pb.RECLAIM_REASON_UNSPECIFIED, 0, "the fleet wants its machine back"),
    ],
)
def test_every_reason_has_its_words(
    reason: pb.ReclaimReason.ValueType, priority: int, words: str
) -> None:
    said = reclaim_words(instruction(reason=reason, preemptor_priority=priority))
    assert words in said


def test_a_reason_of_a_newer_shard_claims_nothing() -> None:
    newer = instruction()
    newer.MergeFromString(b"\xa8\x06\x63")
    assert newer.reason == 99
    assert "the fleet wants its machine back" in reclaim_words(newer)


def test_a_grace_of_nothing_is_read_as_thirty_seconds() -> None:
    assert "30 s to leave" in reclaim_words(instruction(grace_period_seconds=0))
