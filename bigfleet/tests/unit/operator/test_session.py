"""An operator's session: what it tells its shard, when it gives up, and when it is ready."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace

from bigfleet.operator.server import why_not_ready
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubefake import FakeApiServer, refusal
from kubestage import Stage, phase, play, request, two_requests, until


def and_one_that_compares(api: FakeApiServer) -> None:
    two_requests(api)
    api.put(request("gt", requirements=[{"key": "cores", "operator": "Gt", "values": ["8"]}]))


def test_rows_an_older_shard_cannot_read_are_left_out_after_three_silent_rollups() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.acknowledges = False
        await stage.shard.frame("rollup", 4)
        rows = [len(one.rollup.needs) for _, one in stage.shard.of_kind("rollup")]
        assert rows == [2, 2, 2, 1]
        await until(lambda: any(e["reason"] == "NotExpressible" for e in stage.api.all("Event")))
        stage.shard.acknowledges = True
        await until(lambda: phase(stage.api, "a") == "Acknowledged")
        await asyncio.sleep(60)
        assert phase(stage.api, "gt") == "Pending"

    play(scene, and_one_that_compares)


def test_a_shard_that_is_slow_for_a_few_seconds_is_still_told_of_every_row() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.acknowledges = False
        for number in range(8):
            await stage.shard.frame("rollup", number + 1)
            stage.api.put(request(f"more-{number}"))
        stage.shard.acknowledges = True
        await stage.shard.frame("rollup", 12)
        assert all(len(one.rollup.needs) == 2 for _, one in stage.shard.of_kind("rollup"))

    play(scene, and_one_that_compares)


def test_an_operator_comes_back_after_every_end_with_growing_pauses() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.refuse = ["UNAVAILABLE"] * 5
        await until(lambda: len(stage.shard.opened) == 6)
        gaps = [later - earlier for earlier, later in pairwise(stage.shard.opened)]
        bounds = [0.5, 1, 2, 4, 8]
        assert all(b / 2 <= gap <= b + 0.1 for gap, b in zip(gaps, bounds, strict=True))
        await until(lambda: stage.counted("session_connected") == 1)
        assert stage.counted("session_reconnects_total") == 5
        await stage.shard.frame("rollup")
        await asyncio.sleep(1)
        stage.dial.lines[-1].drop()
        await until(lambda: len(stage.shard.opened) == 7)
        assert stage.counted("session_reconnects_total") == 6

    play(scene, two_requests)


def test_an_operator_whose_place_is_taken_again_and_again_comes_back_ever_later() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.end = ["ABORTED"] * 5 + ["UNAVAILABLE"] * 2
        await until(lambda: len(stage.shard.opened) == 8)
        gaps = [later - earlier for earlier, later in pairwise(stage.shard.opened)]
        bounds = [0.5, 1, 2, 4, 8, 0.5, 0.5]
        assert all(b / 2 <= gap <= b + 0.1 for gap, b in zip(gaps, bounds, strict=True))

    play(scene, two_requests)


def test_a_shard_that_never_answers_the_hello_is_called_again() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.greets = False
        await until(lambda: len(stage.shard.opened) == 2)
        first, second = stage.shard.opened
        assert 30 <= second - first <= 31
        assert "Hello" in stage.operator.connection.last_end
        stage.shard.greets = True
        await until(lambda: stage.counted("session_connected") == 1)
        await asyncio.sleep(120)
        assert len(stage.shard.opened) == 3

    play(scene, two_requests)


def test_an_operator_whose_rollups_are_refused_is_not_ready_and_says_why() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.acknowledges = False

        def why() -> str:
            election = SimpleNamespace(is_leader=True)
            return why_not_ready(stage.operator, stage.watches, election)  # type: ignore[arg-type]

        await until(lambda: "has not acknowledged" in why())
        stamp = (await stage.shard.frame("rollup")).rollup.timestamp_unix_nanos
        refused = pb.Acknowledgement(
            echo="rollup_rejected", rollup_timestamp_unix_nanos=stamp, reason="operator 99"
        )
        await stage.shard.send(ack=refused)
        await until(lambda: why() == "the shard refuses the roll-up: operator 99")
        stage.shard.acknowledges = True
        await until(lambda: not why())

    play(scene, two_requests)


def test_an_empty_rollup_is_never_sent_before_the_list_is_complete() -> None:
    async def scene(stage: Stage) -> None:
        stage.api.refuse = lambda r: (
            refusal(500, "InternalError", "starting") if "capacityrequests" in r.path else None
        )
        await asyncio.sleep(60)
        assert not stage.shard.frames
        stage.api.refuse = lambda _r: None
        rollup = (await stage.shard.frame("rollup")).rollup
        assert rollup.needs[0].aggregate_resources["cpu"] == "2"

    play(scene, two_requests)


def test_who_no_longer_leads_counts_nothing_that_another_counts() -> None:
    async def scene(stage: Stage) -> None:
        update = pb.NodeStateUpdate(machine_id="m-1", state=provider.MACHINE_STATE_CONFIGURED)
        await stage.shard.frame("rollup")
        await stage.shard.send(node_state_update=update)
        await until(lambda: stage.counted("phantom_nodes") == 1)
        await until(lambda: stage.counted("capacity_requests", phase="Acknowledged") == 2)
        await stage.stop()
        assert stage.counted("phantom_nodes") == 0
        assert stage.counted("capacity_requests", phase="Acknowledged") == 0

    play(scene, two_requests)
