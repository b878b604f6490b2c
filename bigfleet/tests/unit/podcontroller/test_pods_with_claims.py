"""Requests of Pods with ResourceClaims: counted, shared, or not made at all; on virtual time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from bigfleet.kube.errors import ApiError
from bigfleet.kube.transport import ApiRequest
from kubefake import FakeApiServer, refusal
from kubeobjects import claim, claim_template, exactly, pod, uses
from kubestage import until
from podstage import PodStage, name_of, play

GPU = "nvidia.com/gpu"
CLASSES = {"gpu.example.com": GPU}
Document = dict[str, Any]


def of_age(document: Document, seconds: int) -> Document:
    """A Pod that was created so long after the first."""
    document["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{seconds:02}Z"
    return document


def gpus(stage: PodStage) -> dict[str, str]:
    """Devices in each request, by the name of the Pod."""
    return {
        one["metadata"]["ownerReferences"][0]["name"]: one["spec"]["resources"].get(GPU, "")
        for one in stage.api.all("CapacityRequest")
    }


def events(stage: PodStage, name: str) -> list[str]:
    """Messages of Events that say why a Pod has no request."""
    return [
        one["message"]
        for one in stage.api.all("Event")
        if one["reason"] == "CapacityUnsupported" and one["involvedObject"]["name"] == name
    ]


def test_devices_of_templates_and_claims_are_added_to_the_request() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: gpus(stage) == {"a": "2", "b": "3", "plain": ""})
        assert not [one for one in stage.api.all("Event") if one["type"] == "Warning"]

    def prepare(api: FakeApiServer) -> None:
        api.put(claim_template("two", exactly(count=2)))
        api.put(claim("three", exactly(count=3)))
        api.put(pod("a", resourceClaims=uses(template="two")))
        api.put(pod("b", resourceClaims=uses(claim="three")))
        api.put(pod("plain"))

    play(scene, prepare, classes=CLASSES)


def test_an_unmapped_class_makes_no_request_and_one_event() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: events(stage, "a"))
        stage.api.put(pod("a", priority=3, resourceClaims=uses(template="two")))
        await until(lambda: stage.counted("pod_unsupported") >= 2)
        assert stage.requests() == []
        (words,) = events(stage, "a")
        assert "DeviceClass gpu.example.com" in words
        assert "--device-class-mappings gpu.example.com=RESOURCE" in words

    def prepare(api: FakeApiServer) -> None:
        api.put(claim_template("two", exactly(count=2)))
        api.put(pod("a", resourceClaims=uses(template="two")))

    play(scene, prepare)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_request_follows_when_what_was_missing_appears(kind: str) -> None:
    is_claim = kind == "ResourceClaim"

    async def scene(stage: PodStage) -> None:
        await until(lambda: events(stage, "a"))
        assert stage.requests() == []
        assert f"{kind} late is not there" in events(stage, "a")[0]
        make = claim if is_claim else claim_template
        stage.api.put(make("late", exactly(count=4)))
        await until(lambda: gpus(stage) == {"a": "4"})
        stage.api.remove(kind, "late", "default")
        await until(lambda: not stage.requests())

    source = uses(claim="late") if is_claim else uses(template="late")
    play(scene, lambda api: api.put(pod("a", resourceClaims=source)), classes=CLASSES)


def test_a_pod_that_runs_keeps_its_request_when_its_claim_cannot_be_counted() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: gpus(stage) == {"a": "2"})
        stage.api.put(pod("a", node="n-1", phase="Running", resourceClaims=uses(claim="two")))
        stage.api.remove("ResourceClaim", "two", "default")
        await until(lambda: events(stage, "a"))
        await asyncio.sleep(60)
        assert gpus(stage) == {"a": "2"}

    def prepare(api: FakeApiServer) -> None:
        api.put(claim("two", exactly(count=2)))
        api.put(pod("a", resourceClaims=uses(claim="two")))

    play(scene, prepare, classes=CLASSES)


def test_the_claim_that_was_made_counts_when_its_template_is_gone() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: gpus(stage) == {"a": "2"})
        document = pod("a", resourceClaims=uses(template="two"))
        made = [{"name": "devices", "resourceClaimName": "a-devices-x"}]
        document["status"]["resourceClaimStatuses"] = made
        stage.api.put(claim("a-devices-x", exactly(count=2)))
        stage.api.put(document)
        stage.api.remove("ResourceClaimTemplate", "two", "default")
        await asyncio.sleep(60)
        assert gpus(stage) == {"a": "2"}
        assert events(stage, "a") == []

    def prepare(api: FakeApiServer) -> None:
        api.put(claim_template("two", exactly(count=2)))
        api.put(pod("a", resourceClaims=uses(template="two")))

    play(scene, prepare, classes=CLASSES)


def test_a_shared_claim_counts_once_for_the_first_pod_and_passes_on() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: gpus(stage) == {"old": "2", "twin-1": "", "twin-2": ""})
        # An ended Pod needs no devices, and a Pod that has just come is the last.
        stage.api.put(of_age(pod("old", phase="Succeeded", resourceClaims=uses(claim="two")), 1))
        stage.api.put(of_age(pod("a", resourceClaims=uses(claim="two")), 9))
        await until(lambda: gpus(stage) == {"a": "", "twin-1": "2", "twin-2": ""})
        stage.api.remove("Pod", "twin-1", "default")
        await until(lambda: gpus(stage) == {"a": "", "twin-2": "2"})

    def prepare(api: FakeApiServer) -> None:
        api.put(claim("two", exactly(count=2)))
        api.put(of_age(pod("twin-2", resourceClaims=uses(claim="two")), 5))
        api.put(of_age(pod("twin-1", resourceClaims=uses(claim="two")), 5))
        api.put(of_age(pod("old", resourceClaims=uses(claim="two")), 1))

    play(scene, prepare, classes=CLASSES)


def test_a_pod_whose_other_claim_cannot_be_counted_carries_nothing() -> None:
    both = [*uses(claim="two"), *uses(template="later", name="more")]

    async def scene(stage: PodStage) -> None:
        await until(lambda: gpus(stage) == {"b": "2"})
        stage.api.put(claim_template("later", exactly()))
        await until(lambda: gpus(stage) == {"a": "3", "b": ""})

    def prepare(api: FakeApiServer) -> None:
        api.put(claim("two", exactly(count=2)))
        api.put(of_age(pod("a", resourceClaims=both), 1))
        api.put(of_age(pod("b", resourceClaims=uses(claim="two")), 2))

    play(scene, prepare, classes=CLASSES)


@pytest.mark.parametrize(
    ("code", "words"), [(404, "Kubernetes 1.34"), (403, "get, list and watch")]
)
def test_without_the_api_or_the_rights_all_other_pods_are_followed(
    code: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    away = True

    def refuse(request: ApiRequest) -> ApiError | None:
        if away and "resource.k8s.io" in request.path:
            return refusal(code, "NotFound" if code == 404 else "Forbidden", "no")
        return None

    async def scene(stage: PodStage) -> None:
        nonlocal away
        await until(lambda: stage.requests() == [name_of("plain")])
        assert stage.watches.not_synced() == ""
        await asyncio.sleep(1000)
        (said,) = events(stage, "a")
        assert words in said
        away = False
        await until(lambda: gpus(stage) == {"a": "2", "plain": ""}, 600)

    def prepare(api: FakeApiServer) -> None:
        api.refuse = refuse
        api.put(claim_template("two", exactly(count=2)))
        api.put(pod("a", resourceClaims=uses(template="two")))
        api.put(pod("plain"))

    with caplog.at_level(logging.WARNING):
        play(scene, prepare, classes=CLASSES)
    lines = [one for one in caplog.records if "not counted" in one.message]
    assert len(lines) == 1


def test_a_template_that_its_watch_has_not_brought_yet_is_not_reported() -> None:
    async def scene(stage: PodStage) -> None:
        await until(lambda: stage.requests())
        # The object is there, as a direct read shows, but no watch reports it.
        meta = {"name": "hidden", "namespace": "default", "uid": "u", "resourceVersion": "1"}
        hidden = {**claim_template("hidden", exactly(count=2)), "metadata": meta}
        stage.api.objects["resourceclaimtemplates", "default", "hidden"] = hidden
        stage.api.put(pod("a", resourceClaims=uses(template="hidden")))
        await asyncio.sleep(30)
        assert events(stage, "a") == []
        assert stage.requests() == [name_of("plain")]
        stage.api.put(claim_template("hidden", exactly(count=2)))
        await until(lambda: gpus(stage) == {"a": "2", "plain": ""})

    play(scene, lambda api: api.put(pod("plain")), classes=CLASSES)
