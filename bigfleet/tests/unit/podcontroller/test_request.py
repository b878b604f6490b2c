"""The CapacityRequest of a Pod, and Pods that have none."""

import re
from pathlib import Path
from typing import Any

import pytest

from bigfleet.podcontroller.demand import PodRole, verdict
from bigfleet.podcontroller.errors import DefaultsError
from bigfleet.podcontroller.penalties import read_defaults
from bigfleet.podcontroller.pods import DemandPod
from bigfleet.podcontroller.request import Translation, request_name, translate
from kubeobjects import pod, read

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def of(document: dict[str, Any], **defaults: dict[str, str]) -> Translation:
    return translate(read(DemandPod, document), defaults)


def spec_of(document: dict[str, Any], **defaults: dict[str, str]) -> dict[str, Any]:
    request = of(document, **defaults).request
    assert request is not None
    spec: dict[str, Any] = request["spec"]
    return spec


def judged(document: dict[str, Any], *, foreign: bool = False) -> PodRole:
    return verdict(read(DemandPod, document), on_foreign_node=foreign)


def test_a_request_belongs_to_its_pod() -> None:
    request = of(pod("web-0", uid="8f1c")).request
    assert request is not None
    assert request["metadata"] == {
        "name": request_name("web-0", "8f1c"),
        "namespace": "default",
        "labels": {"bigfleet.lucy.sh/owned-by-pod": "8f1c"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "web-0",
                "uid": "8f1c",
                "controller": True,
            }
        ],
    }
    assert request["spec"] == {
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
        "resources": {"cpu": "500m", "memory": "1Gi", "pods": "1"},
        "priority": 0,
        "tolerations": [],
    }


def test_the_name_follows_from_name_and_uid() -> None:
    assert re.fullmatch(r"cr-pod-web-0-[0-9a-f]{10}", request_name("web-0", "8f1c"))
    assert request_name("web-0", "8f1c") == request_name("web-0", "8f1c")
    assert request_name("web-0", "8f1c") != request_name("web-0", "8f1d")


@pytest.mark.parametrize("name", ["a" * 253, "a" * 234 + ".b" + "c" * 17, "a" * 234 + "-b"])
def test_a_long_name_is_cut_to_a_valid_one(name: str) -> None:
    made = request_name(name, "8f1c")
    assert len(made) <= 253
    assert SUBDOMAIN.fullmatch(made)


def test_priority_and_hard_spreading_are_copied() -> None:
    constraints = [
        {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    spec = spec_of(pod(priority=7, topologySpreadConstraints=constraints))
    assert spec["priority"] == 7
    assert spec["topologySpread"] == [
        {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    ]


def near(**term: Any) -> dict[str, Any]:
    selector = {
        "matchLabels": {"job": "x"},
        "matchExpressions": [{"key": "role", "operator": "Exists"}],
    }
    terms = [{"topologyKey": "zone", "labelSelector": selector, **term}, {"topologyKey": "rack"}]
    return pod(affinity={"podAffinity": {REQUIRED: terms}})


def test_the_first_required_pod_affinity_is_the_place_to_share() -> None:
    assert spec_of(near())["coLocation"] == {
        "topologyKey": "zone",
        "labelSelector": {
            "matchLabels": {"job": "x"},
            "matchExpressions": [{"key": "role", "operator": "Exists"}],
        },
    }


def test_namespaces_of_an_affinity_are_kept() -> None:
    request = of(near(namespaces=["b", "a"])).request
    assert request is not None
    annotations = request["metadata"]["annotations"]
    assert annotations == {"bigfleet.lucy.sh/co-location-namespaces": "a,b"}
    own = of(near(namespaces=["default"])).request
    assert own is not None
    assert "annotations" not in own["metadata"]


def test_penalties_come_from_annotations_else_from_the_priority_class() -> None:
    defaults = {"gold": {"interruptionPenalty": "16", "reclamationPenalty": "2"}}
    stated = {"bigfleet.lucy.sh/interruption-penalty": "500m"}
    spec = spec_of(pod(priorityClassName="gold", annotations=stated), **defaults)
    assert (spec["interruptionPenalty"], spec["reclamationPenalty"]) == ("500m", "2")
    assert "interruptionPenalty" not in spec_of(pod(priorityClassName="lead"), **defaults)


@pytest.mark.parametrize("text", ["-1", "much", ""])
def test_a_bad_penalty_is_said_and_the_default_used(text: str) -> None:
    bad = {"bigfleet.lucy.sh/interruption-penalty": text}
    found = of(pod(priorityClassName="gold", annotations=bad), gold={"interruptionPenalty": "16"})
    assert found.request is not None
    assert found.request["spec"]["interruptionPenalty"] == "16"
    assert "interruption-penalty is passed over" in found.notes[0]


def test_a_pod_that_can_run_nowhere_asks_for_nothing_and_says_why() -> None:
    terms = [{"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["x"]}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    found = of(pod(affinity=affinity))
    assert found.request is None
    assert found.notes


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (pod(), PodRole.DEMAND),
        (pod(node="n-1", phase="Running"), PodRole.DEMAND),
        (pod(phase="Succeeded"), PodRole.TERMINAL),
        (pod(phase="Failed"), PodRole.TERMINAL),
        (pod(deleted=True), PodRole.LEAVING),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), PodRole.SKIPPED),
        (pod(annotations={"kubernetes.io/config.source": "file"}), PodRole.SKIPPED),
        (pod(annotations={"kubernetes.io/config.source": "api"}), PodRole.DEMAND),
        (pod(owner="DaemonSet"), PodRole.SKIPPED),
        (pod(owner="Node"), PodRole.SKIPPED),
        (pod(owner="ReplicaSet"), PodRole.DEMAND),
        (pod(annotations={"bigfleet.lucy.sh/ignore": "true"}), PodRole.IGNORED),
        (pod(annotations={"bigfleet.lucy.sh/ignore": "false"}), PodRole.DEMAND),
        (pod(schedulingGates=[{"name": "wait"}]), PodRole.GATED),
        (pod(schedulingGates=[]), PodRole.DEMAND),
    ],
)
def test_which_pods_are_demand(document: dict[str, Any], expected: PodRole) -> None:
    assert judged(document) is expected


def test_a_pod_on_a_node_that_was_there_before_is_no_demand() -> None:
    assert judged(pod(node="old"), foreign=True) is PodRole.FOREIGN


def test_the_file_of_defaults_is_checked(tmp_path: Path) -> None:
    assert read_defaults(None) == {}
    path = tmp_path / "defaults.yaml"
    path.write_text("gold: {interruptionPenalty: 16}\nlead: {}\n")
    assert read_defaults(path) == {"gold": {"interruptionPenalty": "16"}, "lead": {}}
    for wrong in ("gold: 16", "gold: {penalty: 1}", "gold: {reclamationPenalty: -1}", "[1]", "{"):
        path.write_text(wrong)
        with pytest.raises(DefaultsError, match=str(path)):
            read_defaults(path)
    with pytest.raises(DefaultsError, match="cannot be read"):
        read_defaults(tmp_path / "none.yaml")


def test_tolerations_are_copied_without_those_that_every_pod_gets() -> None:
    automatic = [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 300}
        for name in ("not-ready", "unreachable")
    ]  # fmt: skip
    own = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "batch"},
        {"operator": "Exists"},
    ]
    assert spec_of(pod(tolerations=[*automatic, *own, own[0]]))["tolerations"] == [
        {"operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "batch"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_a_toleration_for_some_seconds_does_not_cover_a_taint_of_a_machine() -> None:
    limited = {"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    assert spec_of(pod(tolerations=[limited]))["tolerations"] == []


def test_a_toleration_that_cannot_be_read_is_left_out_with_a_note() -> None:
    translation = of(pod(tolerations=[{"key": "cores", "operator": "Gt", "value": "8"}]))
    assert translation.request is not None
    assert translation.request["spec"]["tolerations"] == []
    (note,) = translation.notes
    assert "operator 'Gt' is unknown" in note
