"""Where the owner wants it, room is asked for again for Pods that fit nowhere; on virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from bigfleet.podcontroller.stuck import second_name
from kubefake import FakeApiServer
from kubeobjects import pod
from kubestage import until
from podstage import PodStage, name_of, play
from sim.ports import EPOCH_NS

AFTER = 60.0
BEGAN = datetime.fromtimestamp(EPOCH_NS / 1e9, UTC).isoformat()
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "lastTransitionTime": BEGAN,
}


def stuck(name: str, **words: Any) -> dict[str, Any]:
    """A Pod the scheduler has found no node for."""
    made = pod(name, **words)
    made["status"]["conditions"] = [UNSCHEDULABLE]
    return made


def again(name: str) -> str:
    return second_name(name, f"uid-{name}")


async def acknowledge(stage: PodStage, name: str, **status: Any) -> None:
    """What an operator would write."""
    await until(lambda: name_of(name) in stage.requests())
    found = stage.api.get("CapacityRequest", name_of(name), "default")
    assert found is not None
    stage.api.put({**found, "status": {"phase": "Acknowledged", **status}})


def upcoming(phase: str) -> dict[str, Any]:
    return {
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        "metadata": {"name": "un-1"},
        "status": {"phase": phase},
    }


def test_a_pod_that_fits_nowhere_is_asked_for_once_more_and_told_so() -> None:
    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "a")
        await asyncio.sleep(AFTER / 2)
        assert stage.requests() == [name_of("a")]
        await until(lambda: again("a") in stage.requests())
        one, two = (
            stage.api.get("CapacityRequest", name, "default") for name in (name_of("a"), again("a"))
        )
        assert one is not None
        assert two is not None
        assert one["spec"] == two["spec"]
        assert two["metadata"]["ownerReferences"] == one["metadata"]["ownerReferences"]
        await until(lambda: any("once more" in e["message"] for e in stage.api.all("Event")))
        await asyncio.sleep(10 * AFTER)
        assert len(stage.requests()) == 2

    play(scene, lambda api: api.put(stuck("a")), again=AFTER)


def test_the_second_request_follows_its_pod_and_goes_with_it() -> None:
    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "a")
        await until(lambda: again("a") in stage.requests())
        stage.api.put(pod("a", cpu="4", node="n-1", phase="Running"))

        def asked() -> list[str]:
            return [one["spec"]["resources"]["cpu"] for one in stage.api.all("CapacityRequest")]

        await until(lambda: asked() == ["4", "4"])
        await asyncio.sleep(10 * AFTER)
        assert len(stage.requests()) == 2
        stage.api.put(pod("a", node="n-1", phase="Succeeded"))
        await until(lambda: not stage.requests())

    play(scene, lambda api: api.put(stuck("a")), again=AFTER)


def test_no_cluster_asks_again_while_a_machine_is_on_its_way() -> None:
    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "a")
        await asyncio.sleep(10 * AFTER)
        assert stage.requests() == [name_of("a")]
        stage.api.put(upcoming("Ready"))
        await asyncio.sleep(AFTER / 2)
        assert stage.requests() == [name_of("a")]
        await until(lambda: again("a") in stage.requests())

    def prepare(api: FakeApiServer) -> None:
        api.put(stuck("a"))
        api.put(upcoming("Provisioning"))

    play(scene, prepare, again=AFTER)


def test_no_second_request_is_made_for_what_is_not_known_or_not_met() -> None:
    unmet = {"type": "Unmet", "status": "True", "reason": "NO_MATCHING_SUPPLY"}

    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "unmet", conditions=[unmet])
        await asyncio.sleep(10 * AFTER)
        assert sorted(stage.requests()) == sorted(map(name_of, ("unknown", "unmet")))

    play(scene, lambda api: [api.put(stuck(name)) for name in ("unknown", "unmet")], again=AFTER)


def test_no_second_request_is_made_for_a_member_of_a_gang() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "train"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "a")
        await asyncio.sleep(10 * AFTER)
        assert stage.requests() == [name_of("a")]

    play(scene, lambda api: api.put(stuck("a", affinity=near)), again=AFTER)


def test_few_ask_at_a_time_and_the_most_important_first() -> None:
    names = [f"p-{number}" for number in range(10)]

    async def scene(stage: PodStage) -> None:
        for name in names:
            await acknowledge(stage, name)
        await until(lambda: len(stage.requests()) > len(names))
        assert again("p-9") in stage.requests()
        assert len(stage.requests()) == len(names) + 1
        await until(lambda: len(stage.requests()) == 2 * len(names), 3600)

    def prepare(api: FakeApiServer) -> None:
        for number, name in enumerate(names):
            api.put(stuck(name, priority=number))

    play(scene, prepare, again=AFTER)


def test_second_requests_go_where_the_owner_does_not_want_them_any_more() -> None:
    async def scene(stage: PodStage) -> None:
        await acknowledge(stage, "a")
        await until(lambda: again("a") in stage.requests())
        await stage.stop()
        other = PodStage(stage.api)
        await until(lambda: other.requests() == [name_of("a")])
        await other.stop()

    play(scene, lambda api: api.put(stuck("a")), again=AFTER)
