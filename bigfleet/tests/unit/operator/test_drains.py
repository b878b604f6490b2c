"""Nodes that are emptied: budgets, graces, cancels, restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bigfleet.operator.drain import marks
from bigfleet.operator.drain.marks import Mark
from bigfleet.operator.nodes.objects import Node
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubefake import FakeApiServer, merge, refusal
from kubeobjects import node, pod, read
from kubestage import Stage, play, until

S = provider.MachineState
HOST = "host-m-1"


def bound(name: str, **more: Any) -> dict[str, Any]:
    return pod(name, node=more.pop("on", "n-1"), phase="Running", **more)


def one_node(api: FakeApiServer) -> None:
    api.put(node("n-1", provider_id=f"x:///{HOST}"))
    api.put(bound("web-0"))
    api.put(bound("web-1"))
    api.put(bound("agent", owner="DaemonSet"))
    api.put(bound("static", annotations={"kubernetes.io/config.mirror": "x"}))
    api.put(bound("done", owner="Job") | {"status": {"phase": "Succeeded"}})


def instruction(
    grace: int = 120, *, cancel: bool = False, number: int = 1, nodes: tuple[str, ...] = ("n-1",)
) -> pb.ReclaimInstruction:
    return pb.ReclaimInstruction(
        instruction_id=f"i-{number}", nodes=nodes, grace_period_seconds=grace, cancel=cancel
    )


def held(stage: Stage, name: str = "n-1") -> bool:
    found = stage.api.get("Node", name)
    assert found is not None
    tainted = [t for t in found["spec"].get("taints", ()) if t["key"] == marks.TAINT]
    assert bool(tainted) == bool(found["spec"].get("unschedulable"))
    return bool(tainted)


def acks(stage: Stage) -> list[pb.ReclaimAck]:
    return [one.reclaim_ack for _, one in stage.shard.of_kind("reclaim_ack")]


def running(stage: Stage) -> set[str]:
    return {one["metadata"]["name"] for one in stage.api.all("Pod")}


async def instructed(stage: Stage, **how: Any) -> None:
    await stage.shard.frame("rollup")
    await stage.shard.send(reclaim_instruction=instruction(**how))


async def blocked(stage: Stage) -> None:
    """A drain that a budget holds up, begun and acknowledged."""
    stage.api.budgets["default", "web-0"] = 10_000
    await instructed(stage, grace=600)
    await stage.shard.frame("reclaim_ack")


async def restarted(stage: Stage) -> None:
    """The operator dies, comes back and has reported."""
    await stage.kill()
    stage.start()
    await stage.shard.frame("rollup", 2)


def test_a_node_is_cordoned_acknowledged_emptied_and_acknowledged_again() -> None:
    async def scene(stage: Stage) -> None:
        await instructed(stage)
        first = (await stage.shard.frame("reclaim_ack")).reclaim_ack
        assert held(stage)
        assert (first.nodes_started, first.nodes_drained) == (1, 0)
        second = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert (second.instruction_id, second.nodes_drained) == ("i-1", 1)
        assert not second.nodes_left
        assert sorted(stage.api.evicted) == ["web-0", "web-1"]
        assert running(stage) == {"agent", "static", "done"}
        assert held(stage)
        assert stage.counted("drains_total", outcome="drained") == 1
        assert stage.counted("evictions_total", outcome="success") == 2

    play(scene, one_node)


def test_a_budget_is_asked_again_and_kept() -> None:
    async def scene(stage: Stage) -> None:
        stage.api.budgets["default", "web-0"] = 3
        await instructed(stage)
        ack = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert ack.nodes_drained == 1
        assert stage.counted("evictions_total", outcome="blocked") == 3

    play(scene, one_node)


def test_a_blocked_drain_ends_at_its_grace_with_the_node_named() -> None:
    async def scene(stage: Stage) -> None:
        stage.api.budgets["default", "web-0"] = 10_000
        loop = asyncio.get_running_loop()
        began = loop.time()
        await instructed(stage, grace=30)
        ack = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert 29 <= loop.time() - began <= 32
        assert list(ack.nodes_left) == ["n-1"]
        assert running(stage) >= {"web-0"}
        assert stage.counted("drains_total", outcome="deadline") == 1

    play(scene, one_node)


def test_a_pod_that_takes_its_time_is_waited_for() -> None:
    async def scene(stage: Stage) -> None:
        leaving: list[dict[str, Any]] = []
        stage.api.on_evicted = leaving.append
        await instructed(stage)
        await until(lambda: len(leaving) == 2)
        await asyncio.sleep(20)
        assert len(acks(stage)) == 1
        for one in leaving:
            stage.api.drop_pod(one)
        ack = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert ack.nodes_drained == 1
        assert len(leaving) == 2

    play(scene, one_node)


def test_a_cancel_stops_evicting_and_lets_the_node_go() -> None:
    async def scene(stage: Stage) -> None:
        stage.api.budgets["default", "web-0"] = 10_000
        await instructed(stage)
        await stage.shard.frame("reclaim_ack")
        await stage.shard.send(reclaim_instruction=instruction(cancel=True))
        await until(lambda: not held(stage))
        found = stage.api.get("Node", "n-1")
        assert found is not None
        assert not found["metadata"].get("annotations")
        asked = len(stage.api.calls)
        await asyncio.sleep(60)
        assert not [path for _, path in stage.api.calls[asked:] if "eviction" in path]
        assert stage.counted("drains_total", outcome="cancelled") == 1

    play(scene, one_node)


def test_a_cancel_of_an_unknown_drain_lets_only_our_own_nodes_go() -> None:
    def prepare(api: FakeApiServer) -> None:
        api.put(node("n-2", unschedulable=True))

    async def scene(stage: Stage) -> None:
        await instructed(stage, cancel=True, nodes=("n-2",))
        await asyncio.sleep(5)
        found = stage.api.get("Node", "n-2")
        assert found is not None
        assert found["spec"]["unschedulable"]

    play(scene, prepare)


def test_a_restart_goes_on_and_is_confirmed_by_the_instruction() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        await restarted(stage)
        assert held(stage)
        await until(lambda: len(stage.operator.drains) == 1)
        await stage.shard.send(reclaim_instruction=instruction(600))
        await asyncio.sleep(90)
        assert held(stage)
        stage.api.budgets.clear()
        await until(lambda: acks(stage)[-1].nodes_drained == 1)
        assert acks(stage)[-1].instruction_id == "i-1"

    play(scene, one_node)


def test_a_restart_calls_off_what_the_shard_does_not_confirm_in_a_minute() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        await restarted(stage)
        await asyncio.sleep(50)
        assert held(stage)
        await asyncio.sleep(20)
        assert not held(stage)
        assert not len(stage.operator.drains)

    play(scene, one_node)


def test_a_lease_that_is_lost_and_taken_again_goes_on_draining() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        await stage.lead_again()
        stage.api.budgets.clear()
        await until(lambda: acks(stage)[-1].nodes_drained == 1)

    play(scene, one_node)


def test_a_node_that_goes_in_the_middle_ends_its_drain() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        stage.api.remove("Node", "n-1")
        ack = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert ack.nodes_drained == 1

    play(scene, one_node)


def test_a_machine_shown_as_draining_confirms() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        await restarted(stage)
        draining = pb.NodeStateUpdate(
            machine_id="m-1", state=S.MACHINE_STATE_DRAINING, provider_id=HOST
        )
        await stage.shard.send(node_state_update=draining)
        await asyncio.sleep(90)
        assert held(stage)

    play(scene, one_node)


def test_a_session_that_breaks_leaves_a_running_drain_alone() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        stage.dial.lines[-1].drop()
        await until(lambda: len(stage.shard.streams) == 2)
        await asyncio.sleep(90)
        assert held(stage)

    play(scene, one_node)


def test_an_entry_may_be_a_machine_and_a_node_that_is_gone_is_empty() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        ready = pb.NodeStateUpdate(
            machine_id="m-1", state=S.MACHINE_STATE_CONFIGURED, provider_id=HOST
        )
        await stage.shard.send(node_state_update=ready)
        await until(lambda: stage.api.all("UpcomingNode"))
        by_machine = instruction(nodes=("m-1", "nowhere"))
        await stage.shard.send(reclaim_instruction=by_machine)
        ack = (await stage.shard.frame("reclaim_ack", 2)).reclaim_ack
        assert (ack.nodes_started, ack.nodes_drained) == (1, 2)
        assert stage.counted("drains_total", outcome="node_gone") == 1

    play(scene, one_node)


def test_a_newer_instruction_takes_the_node_over() -> None:
    async def scene(stage: Stage) -> None:
        await blocked(stage)
        await stage.shard.send(reclaim_instruction=instruction(20, number=2))
        await until(lambda: acks(stage)[-1].nodes_left)
        assert acks(stage)[-1].instruction_id == "i-2"
        assert held(stage)
        assert len(stage.operator.drains) == 1

    play(scene, one_node)


def test_an_api_server_that_is_away_delays_a_drain_but_does_not_lose_it() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        stage.api.refuse = lambda r: (
            refusal(500, "InternalError", "away") if "n-1" in r.path or "pods" in r.path else None
        )
        await stage.shard.send(reclaim_instruction=instruction(120))
        await asyncio.sleep(30)
        assert not acks(stage)
        stage.api.refuse = lambda _r: None
        await until(lambda: acks(stage) and acks(stage)[-1].nodes_drained == 1)

    play(scene, one_node)


@pytest.mark.parametrize("cordoned", [False, True])
def test_letting_go_leaves_a_node_as_it_was(cordoned: bool) -> None:
    document = node("n-1", unschedulable=cordoned)
    document["spec"]["taints"] = [{"key": "own", "effect": "NoExecute", "value": "1"}]
    api = FakeApiServer()
    before = api.put(document)["spec"]
    mark = Mark("i-1", 1_800_000_000)
    for change in (lambda n: marks.cordon(n, mark), marks.uncordon):
        patch = change(read(Node, api.objects["nodes", "", "n-1"]))
        assert patch is not None
        merge(api.objects["nodes", "", "n-1"], patch)
        now = read(Node, api.objects["nodes", "", "n-1"])
        if change is not marks.uncordon:
            assert marks.mark_of(now) == mark
            assert marks.cordon(now, mark) is None
    assert api.objects["nodes", "", "n-1"]["spec"] == before
    assert marks.uncordon(read(Node, api.objects["nodes", "", "n-1"])) is None
