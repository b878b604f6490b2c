"""CapacityRequests follow Pods, whatever happens in between; on virtual time."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from bigfleet.podcontroller.request import request_name
from kubefake import FakeApiServer, refusal
from kubeobjects import node, pod
from kubestage import until
from podstage import PodStage as Stage
from podstage import name_of, play
from sim.loop import virtual_loop


def ours(api: FakeApiServer, name: str = "n-1") -> None:
    api.put(node(name, labels={"bigfleet.lucy.sh/machine-id": "m-1"}))


def test_every_pod_that_is_demand_has_exactly_one_request() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: len(stage.requests()) == 3)
        stage.api.put(pod("late"))
        await until(lambda: name_of("late") in stage.requests())
        await asyncio.sleep(30)
        assert sorted(stage.requests()) == sorted(map(name_of, ("a", "b", "run", "late")))
        assert stage.counted("cr_created") == 4

    def prepare(api: FakeApiServer) -> None:
        ours(api)
        for document in (
            pod("a"),
            pod("b"),
            pod("run", node="n-1", phase="Running"),
            pod("agent", owner="DaemonSet"),
            pod("over", phase="Succeeded"),
        ):
            api.put(document)

    play(scene, prepare)


def test_a_request_goes_when_its_pod_ends_is_deleted_or_is_left_out() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: len(stage.requests()) == 3)
        stage.api.put(pod("a", phase="Succeeded"))
        stage.api.remove("Pod", "b", "default")
        stage.api.put(pod("c", annotations={"bigfleet.lucy.sh/ignore": "true"}))
        await until(lambda: not stage.requests())
        assert stage.counted("pod_terminal") >= 1

    play(scene, lambda api: [api.put(pod(name)) for name in "abc"])


def test_a_pod_that_is_resized_or_reprioritised_is_followed() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        stage.api.put(pod("a", cpu="4", priority=9))

        def spec() -> dict[str, Any]:
            found = stage.api.get("CapacityRequest", name_of("a"), "default")
            assert found is not None
            written: dict[str, Any] = found["spec"]
            return written

        await until(lambda: spec()["priority"] == 9)
        assert spec()["resources"] == {"cpu": "4", "memory": "1Gi", "pods": "1"}
        assert stage.counted("cr_updated") == 1

    play(scene, lambda api: api.put(pod("a")))


def test_a_request_that_a_person_deleted_is_made_again() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        stage.api.remove("CapacityRequest", name_of("a"), "default")
        await until(lambda: stage.requests())

    play(scene, lambda api: api.put(pod("a")))


def test_a_new_pod_of_an_old_name_has_a_new_request() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        stage.api.remove("Pod", "a", "default")
        stage.api.put(pod("a", uid="another"))
        await until(lambda: stage.requests() == [request_name("a", "another")])

    play(scene, lambda api: api.put(pod("a")))


def test_pods_on_nodes_that_were_there_before_are_left_to_them() -> None:
    def prepare(api: FakeApiServer) -> None:
        api.put(node("old"))
        api.put(pod("settled", node="old", phase="Running"))
        api.put(pod("waiting"))

    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests() == [name_of("waiting")])
        stage.api.put(pod("waiting", node="old"))
        await until(lambda: not stage.requests())

    play(scene, prepare)

    async def counted(stage: Stage) -> None:
        await until(lambda: len(stage.requests()) == 2)

    play(counted, prepare, adopts=False)


def test_a_pod_on_a_node_that_has_just_come_keeps_its_demand() -> None:
    created = "2025-06-15T15:06:40Z"  # when the virtual wall clock begins

    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        stage.api.put(node("new", provider_id="x:///h-1", created=created))
        stage.api.put(pod("a", node="new"))
        await asyncio.sleep(60)
        assert stage.requests()
        upcoming = {
            "kind": "UpcomingNode",
            "metadata": {"name": "un-m-1"},
            "spec": {},
            "status": {"providerID": "h-1"},
        }
        stage.api.put(upcoming)
        await asyncio.sleep(300)
        assert stage.requests()

    play(scene, lambda api: api.put(pod("a")))


def test_a_node_without_a_claim_is_foreign_after_a_while() -> None:
    created = "2025-06-15T15:06:40Z"

    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        stage.api.put(node("new", created=created))
        stage.api.put(pod("a", node="new"))
        await asyncio.sleep(60)
        assert stage.requests()
        await asyncio.sleep(120)
        assert not stage.requests()

    play(scene, lambda api: api.put(pod("a")))


def test_a_restart_in_the_middle_doubles_and_misses_nothing() -> None:
    async def run() -> None:
        api = FakeApiServer()
        for number in range(40):
            api.put(pod(f"p-{number}"))
        failing = Random(3)
        api.refuse = lambda r: (
            refusal(500, "InternalError", "no") if failing.random() < 0.3 else None
        )
        for life in range(5):
            stage = Stage(api)
            await asyncio.sleep(0.5)
            await stage.stop()
            api.remove("Pod", f"p-{life}", "default")
            api.put(pod(f"new-{life}"))
        api.refuse = lambda _r: None
        stage = Stage(api)
        try:
            expected = {name_of(one["metadata"]["name"]) for one in api.all("Pod")}
            await until(lambda: set(stage.requests()) == expected)
            api.break_watches()
            await asyncio.sleep(60)
            assert set(stage.requests()) == expected
        finally:
            await stage.stop()

    virtual_loop(5).run(run())


def test_two_at_once_make_no_second_request() -> None:
    async def run() -> None:
        api = FakeApiServer()
        for number in range(20):
            api.put(pod(f"p-{number}"))
        one, other = Stage(api), Stage(api)
        await until(lambda: len(one.requests()) == 20)
        await asyncio.sleep(10)
        assert len(one.requests()) == 20
        assert one.counted("error") == other.counted("error") == 0
        await one.stop()
        await other.stop()

    virtual_loop(1).run(run())


def test_what_cannot_be_expressed_is_an_event_on_the_pod() -> None:
    bad = {"bigfleet.lucy.sh/interruption-penalty": "expensive"}

    async def scene(stage: Stage) -> None:
        about = "CapacityRequest"
        await until(lambda: any(one["reason"] == about for one in stage.api.all("Event")))
        (event,) = (one for one in stage.api.all("Event") if one["reason"] == about)
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Pod", "a")
        assert "interruption-penalty" in event["message"]
        assert stage.requests()

    play(scene, lambda api: api.put(pod("a", annotations=bad)))


def test_a_request_the_rules_refuse_is_told_to_the_owner() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: stage.api.all("Event"))
        assert "too long" in stage.api.all("Event")[0]["message"]

    def prepare(api: FakeApiServer) -> None:
        api.put(pod("a"))
        api.refuse = lambda r: (
            refusal(422, "Invalid", "too long")
            if r.method == "POST" and "capacityrequests" in r.path
            else None
        )

    play(scene, prepare)


def test_a_request_of_an_earlier_release_gets_its_tolerations() -> None:
    gpu = {"key": "gpu", "operator": "Exists"}

    def tolerations(stage: Stage, name: str) -> object:
        found = stage.api.get("CapacityRequest", name_of(name), "default")
        return None if found is None else found["spec"].get("tolerations")

    async def scene(stage: Stage) -> None:
        await until(lambda: len(stage.requests()) == 2)
        for name in "ab":
            old = stage.api.get("CapacityRequest", name_of(name), "default")
            assert old is not None
            del old["spec"]["tolerations"]
            stage.api.put(old)
        await until(lambda: tolerations(stage, "a") == [gpu] and tolerations(stage, "b") == [])
        assert stage.counted("cr_created") == 2

    play(scene, lambda api: [api.put(pod("a", tolerations=[gpu])), api.put(pod("b"))])


def test_a_pod_that_tolerates_more_than_before_gets_a_new_request() -> None:
    gpu = {"key": "gpu", "operator": "Exists"}

    async def scene(stage: Stage) -> None:
        await until(lambda: stage.requests())
        before = stage.api.get("CapacityRequest", name_of("a"), "default")
        stage.api.put(pod("a", tolerations=[gpu]))

        def follows() -> bool:
            found = stage.api.get("CapacityRequest", name_of("a"), "default")
            return found is not None and found["spec"]["tolerations"] == [gpu]

        await until(follows)
        after = stage.api.get("CapacityRequest", name_of("a"), "default")
        assert before is not None
        assert after is not None
        assert after["metadata"]["uid"] != before["metadata"]["uid"]

    play(scene, lambda api: api.put(pod("a")))
