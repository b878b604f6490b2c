"""What a cluster could get, as AvailableCapacity objects, on virtual time."""

from __future__ import annotations

import asyncio

from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubefake import refusal
from kubestage import Stage, play, two_requests, until

OPERATORS = capacity.NodeSelectorRequirement


def hint(stage: Stage, count: int) -> pb.AvailableCapacityUpdate:
    """So many machines of the one profile that is asked for."""
    fingerprint = next(iter(stage.operator.rollups.fingerprints()))
    return pb.AvailableCapacityUpdate(
        supersedes_key=f"available:{fingerprint}",
        available_count=count,
        confidence=pb.AvailableCapacityUpdate.CONFIDENCE_HIGH,
        cost_per_hour=0.38,
    )


def available(stage: Stage) -> list[int]:
    return [one["spec"]["availableCount"] for one in stage.api.all("AvailableCapacity")]


def test_hints_become_available_capacity_and_go_with_the_demand() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        told = hint(stage, 3)
        told.requirements.add(key="zone", operator=OPERATORS.OPERATOR_IN, values=["a"])
        told.requirements.add(key="rack", operator=OPERATORS.OPERATOR_SAME)
        await stage.shard.send(available_capacity=told)
        await until(lambda: stage.api.all("AvailableCapacity"))
        (found,) = stage.api.all("AvailableCapacity")
        assert found["spec"] == {
            "requirements": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "availableCount": 3,
            "availability": "High",
            "cost": "0.38",
        }
        stage.api.remove("CapacityRequest", "a", "default")
        stage.api.remove("CapacityRequest", "b", "default")
        await until(lambda: not stage.api.all("AvailableCapacity"))

    play(scene, two_requests)


def test_a_hint_that_could_not_be_written_or_was_deleted_is_written_again() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        stage.api.refuse = lambda r: (
            refusal(500, "InternalError", "no") if "availablecapacities" in r.path else None
        )
        await stage.shard.send(available_capacity=hint(stage, 3))
        await asyncio.sleep(20)
        assert not available(stage)
        stage.api.refuse = lambda _r: None
        await until(lambda: available(stage) == [3])
        (found,) = stage.api.all("AvailableCapacity")
        stage.api.remove("AvailableCapacity", found["metadata"]["name"])
        await until(lambda: available(stage) == [3])

    play(scene, two_requests)


def test_the_newest_hint_wins_although_the_one_before_it_still_waits() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        stage.operator.available.hear(hint(stage, 3))
        await until(lambda: available(stage) == [3])
        stage.operator.available.hear(hint(stage, 9))
        stage.operator.available.hear(hint(stage, 3))
        await asyncio.sleep(60)
        assert available(stage) == [3]

    play(scene, two_requests)
