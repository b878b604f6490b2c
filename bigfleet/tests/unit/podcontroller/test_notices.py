"""The Events on Pods: each when it becomes true, and not more than five an hour."""

from __future__ import annotations

import asyncio
from typing import Any

from bigfleet.podcontroller.notices import MOST
from kubefake import FakeApiServer
from kubeobjects import node, pod
from kubestage import until
from podstage import PodStage as Stage
from podstage import name_of, play

PROFILE = "a" * 32
BEGIN = "2025-06-15T15:06:40Z"
"""When the virtual wall clock begins."""


def events(stage: Stage, reason: str = "") -> list[dict[str, Any]]:
    return [one for one in stage.api.all("Event") if not reason or one["reason"] == reason]


def words(stage: Stage, reason: str) -> list[str]:
    return [one["message"] for one in events(stage, reason)]


def upcoming(name: str = "un-m-1", phase: str = "Provisioning", **more: Any) -> dict[str, Any]:
    group = {"bigfleet.lucy.sh/group": more.pop("group")} if "group" in more else {}
    return {
        "kind": "UpcomingNode",
        "metadata": {
            "name": name,
            "labels": {"bigfleet.lucy.sh/profile": more.pop("profile", PROFILE)},
            "annotations": group,
        },
        "spec": {
            "labels": {
                "node.kubernetes.io/instance-type": "big-4",
                "topology.kubernetes.io/zone": "eu-1a",
            }
        },
        "status": {"phase": phase, "provisioningStartTime": BEGIN} | more,
    }


def set_status(stage: Stage, name: str, **status: Any) -> None:
    """What the operator writes on a Pod's request."""
    found = stage.api.get("CapacityRequest", name_of(name), "default")
    assert found is not None
    need = {"phase": "Acknowledged", "need": {"profile": PROFILE} | status.pop("need", {})}
    stage.api.put({**found, "status": need | status})


def unmet(reason: str, message: str = "", at: str = BEGIN, status: str = "True") -> dict[str, Any]:
    return {
        "type": "Unmet",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }


async def has_request(stage: Stage, name: str = "a") -> None:
    await until(lambda: name_of(name) in stage.requests())


def test_a_pod_is_told_that_room_was_asked_for() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: events(stage))
        (event,) = events(stage)
        assert (event["type"], event["reason"]) == ("Normal", "CapacityRequested")
        about = event["involvedObject"]
        assert (about["kind"], about["name"], about["uid"]) == ("Pod", "a", "uid-a")
        asked = f"cpu 500m, memory 1Gi (CapacityRequest {name_of('a')})"
        assert event["message"] == f"Asked BigFleet for {asked}."

    play(scene, lambda api: api.put(pod("a")))


def test_a_pod_that_runs_already_is_told_nothing() -> None:
    def prepare(api: FakeApiServer) -> None:
        api.put(node("n-1", labels={"bigfleet.lucy.sh/machine-id": "m-1"}))
        api.put(pod("a", node="n-1", phase="Running"))

    async def scene(stage: Stage) -> None:
        await has_request(stage)
        set_status(stage, "a", conditions=[unmet("StockOut", "no more")])
        stage.api.put(upcoming())
        await asyncio.sleep(60)
        assert not events(stage)

    play(scene, prepare)


def test_a_pod_is_told_once_that_a_node_comes_and_when() -> None:
    def came_before(api: FakeApiServer) -> None:
        """A node of this type took 90 s."""
        ready = upcoming("un-m-0", "Ready", nodeRef={"name": "n-0"}, profile="other")
        ready["status"]["provisioningStartTime"] = "2025-12-31T23:58:30Z"
        api.put(ready)
        api.put(node("n-0"))
        api.put(pod("a"))

    async def scene(stage: Stage) -> None:
        await has_request(stage)
        set_status(stage, "a")
        stage.api.put(upcoming(provisioningStartTime="2025-06-15T15:06:45Z"))
        await until(lambda: events(stage, "NodeOnItsWay"))
        stage.api.put(upcoming(phase="Launched", provisioningStartTime="2025-06-15T15:06:45Z"))
        stage.api.put(upcoming("un-m-2"))
        await asyncio.sleep(600)
        (told,) = words(stage, "NodeOnItsWay")
        assert told.startswith("A node is on the way for the demand of this Pod (big-4 in eu-1a).")
        assert "It is expected at 15:08:15 UTC, in about 1m" in told

    play(scene, came_before)


def test_without_an_earlier_node_of_the_type_no_time_is_made_up() -> None:
    async def scene(stage: Stage) -> None:
        await has_request(stage)
        set_status(stage, "a")
        stage.api.put(upcoming())
        stage.api.put(upcoming("un-m-2"))
        await until(lambda: events(stage, "NodeOnItsWay"))
        (told,) = words(stage, "NodeOnItsWay")
        assert told.startswith("2 nodes are on the way")
        assert told.endswith("How long a node of this type takes is not known yet.")

    play(scene, lambda api: api.put(pod("a")))


def test_a_node_for_another_need_or_another_gang_is_not_told() -> None:
    async def scene(stage: Stage) -> None:
        await has_request(stage)
        set_status(stage, "a", need={"group": "default/zone/one"})
        stage.api.put(upcoming("un-m-1", profile="b" * 32, group="default/zone/one"))
        stage.api.put(upcoming("un-m-2", group="default/zone/two"))
        await asyncio.sleep(60)
        assert not events(stage, "NodeOnItsWay")
        stage.api.put(upcoming("un-m-3", group="default/zone/one"))
        await until(lambda: events(stage, "NodeOnItsWay"))

    play(scene, lambda api: api.put(pod("a")))


def test_an_unmet_pod_is_told_why_once_per_change_of_reason() -> None:
    async def scene(stage: Stage) -> None:
        await has_request(stage)
        why = "the provider has run out of machines that fit; missing cpu 32"
        set_status(stage, "a", conditions=[unmet("StockOut", why)])
        await until(lambda: events(stage, "CapacityUnmet"))
        set_status(stage, "a", conditions=[unmet("StockOut", why + " more")])
        await asyncio.sleep(300)
        (event,) = events(stage, "CapacityUnmet")
        assert event["type"] == "Warning"
        assert event["message"] == f"No room for this Pod yet: {why}."
        set_status(stage, "a", conditions=[unmet("Quota", "the quota is used up")])
        await until(lambda: len(events(stage, "CapacityUnmet")) == 2)
        assert all(one["count"] == 1 for one in events(stage))

    play(scene, lambda api: api.put(pod("a")))


def test_a_reason_that_changes_all_the_time_is_five_events_an_hour_and_the_last_one_is_told() -> (
    None
):
    async def scene(stage: Stage) -> None:
        await has_request(stage)
        for number in range(60):
            reason = ("StockOut", "Quota", "SpendLimit")[number % 3]
            moment = f"2025-06-15T15:{number:02}:00Z"
            set_status(stage, "a", conditions=[unmet(reason, f"reason {number}", moment)])
            await asyncio.sleep(40)
        assert len(events(stage)) == MOST
        await asyncio.sleep(3600)
        assert "No room for this Pod yet: reason 59." in words(stage, "CapacityUnmet")
        assert len(events(stage)) == MOST + 1

    play(scene, lambda api: api.put(pod("a")))


def test_another_leader_writes_no_event_twice() -> None:
    async def scene(stage: Stage) -> None:
        await has_request(stage)
        set_status(stage, "a", conditions=[unmet("StockOut", "no more")])
        stage.api.put(upcoming())
        await until(lambda: len(events(stage)) == 3)
        before = [(one["metadata"]["name"], one["count"]) for one in events(stage)]
        patches = [call for call in stage.api.calls if call[0] == "PATCH" and "events" in call[1]]
        await stage.stop()
        another = Stage(stage.api)
        try:
            await asyncio.sleep(120)
        finally:
            await another.stop()
        assert [(one["metadata"]["name"], one["count"]) for one in events(stage)] == before
        assert not patches

    play(scene, lambda api: api.put(pod("a")))


def test_a_pod_that_went_is_forgotten_and_its_successor_is_told_itself() -> None:
    async def scene(stage: Stage) -> None:
        await until(lambda: events(stage, "CapacityRequested"))
        stage.api.remove("Pod", "a", "default")
        stage.api.put(pod("a", uid="another"))
        await until(lambda: len(events(stage, "CapacityRequested")) == 2)
        stage.api.remove("Pod", "a", "default")
        await until(lambda: not len(stage.notices))

    play(scene, lambda api: api.put(pod("a")))
