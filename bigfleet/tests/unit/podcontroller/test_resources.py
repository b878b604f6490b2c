"""What a Pod takes on a node."""

from typing import Any

import pytest

from bigfleet.kube.podspec import pod_resources
from bigfleet.podcontroller.pods import DemandPod
from kubeobjects import pod, read


def container(cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    requests = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
    return {"name": more.pop("name", "c"), "resources": {"requests": requests}, **more}


def taken(**spec: Any) -> dict[str, int]:
    document = pod()
    document["status"].update(spec.pop("status", {}))
    document["spec"].update(spec)
    read_pod = read(DemandPod, document)
    return pod_resources(read_pod.spec, read_pod.status)


def test_containers_are_added_up_and_a_pod_takes_the_place_of_one_pod() -> None:
    found = taken(containers=[container("500m", "1Gi"), container("1", "1Gi")])
    assert found == {"cpu": 1500, "memory": 2 * 1024**3 * 1000, "pods": 1000}


def test_an_init_container_counts_only_where_it_asks_for_more() -> None:
    found = taken(
        containers=[container("1", "4Gi")], initContainers=[container("3", "1Gi", name="init")]
    )
    assert found["cpu"] == 3000
    assert found["memory"] == 4 * 1024**3 * 1000


def test_init_containers_run_one_after_the_other() -> None:
    found = taken(
        containers=[container("1")],
        initContainers=[container("2", name="a"), container("3", name="b")],
    )
    assert found["cpu"] == 3000


def test_a_sidecar_stays_and_later_init_containers_run_beside_it() -> None:
    found = taken(
        containers=[container("1")],
        initContainers=[
            container("4", name="first"),
            container("2", name="sidecar", restartPolicy="Always"),
            container("3", name="after"),
        ],
    )
    # While it starts 4, then 2 + 3; afterwards 1 + 2.
    assert found["cpu"] == 5000
    only = [container("2", name="sidecar", restartPolicy="Always")]
    assert taken(containers=[container("1")], initContainers=only)["cpu"] == 3000


def test_the_runtimes_overhead_comes_on_top() -> None:
    assert taken(containers=[container("1")], overhead={"cpu": "250m"})["cpu"] == 1250


def test_what_is_stated_for_the_whole_pod_takes_the_place_of_the_sum() -> None:
    found = taken(
        containers=[container("1", "1Gi"), container("1", "1Gi")],
        resources={"requests": {"cpu": "5", "example.com/gpu": "1"}},
        overhead={"cpu": "1"},
    )
    assert found["cpu"] == 6000
    assert found["memory"] == 2 * 1024**3 * 1000
    assert "example.com/gpu" not in found


def test_a_limit_without_a_request_is_a_request() -> None:
    limited = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "2"}}}
    assert taken(containers=[limited])["nvidia.com/gpu"] == 2000


def test_nothing_asked_for_is_still_a_pod() -> None:
    assert taken(containers=[container("0")]) == {"pods": 1000}


@pytest.mark.parametrize(
    ("given", "cpu"),
    [
        ({"resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"allocatedResources": {"cpu": "4"}}, 4000),
        ({"resources": {"requests": {"cpu": "1"}}}, 2000),
        ({}, 2000),
    ],
)
def test_a_pod_that_is_resized_counts_with_the_greater(given: dict[str, Any], cpu: int) -> None:
    status = {"containerStatuses": [{"name": "c", **given}]}
    assert taken(containers=[container("2")], status=status)["cpu"] == cpu


def test_a_resize_that_cannot_be_is_not_counted() -> None:
    status = {
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert taken(containers=[container("64")], status=status)["cpu"] == 1000
