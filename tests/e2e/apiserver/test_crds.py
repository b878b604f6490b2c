"""The CRDs, judged by a real API server: what is refused, and in which words."""

import json
from typing import Any

import pytest
from capacity_requests import FULL_REQUESTS, CapacityRequest

from bigfleet.kube import InvalidError, KubeClient
from bigfleet.kube.fleet import (
    AVAILABLE_CAPACITIES,
    UPCOMING_NODES,
)
from kube.plane import ControlPlane

ANYTHING = FULL_REQUESTS.read_as(dict)


def request(**spec: Any) -> dict[str, object]:
    """A good CapacityRequest with a change; None leaves a field out."""
    whole = {"resources": {"cpu": "1"}, "priority": 0} | spec
    kept = {name: value for name, value in whole.items() if value is not None}
    return {"metadata": {"name": "one"}, "spec": kept}


def needs(operator: str, *values: str, key: str = "zone") -> list[dict[str, object]]:
    return [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]


def spread(**change: Any) -> list[dict[str, Any]]:
    return [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | change]


def together(expressions: list[dict[str, object]]) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchExpressions": expressions}}


QUANTITY = "a resource is a quantity of zero or more, such as 500m, 4 or 16Gi"
PENALTY = "a penalty is a quantity of dollars of zero or more"
REFUSED = [
    (request(resources=None), "spec.resources: Required value"),
    (request(resources={}), "resources are empty; name at least one, such as cpu: 500m"),
    (request(resources={"cpu": "4 cores"}), QUANTITY),
    (request(resources={"memory": "16GB"}), QUANTITY),
    (request(resources={"cpu": "-1"}), QUANTITY),
    (request(resources={"cpu": -1}), QUANTITY),
    (request(resources={"cpu": ""}), QUANTITY),
    (request(resources={"cpu": "1x2m"}), "spec.resources.cpu in body should match"),
    (request(resources={"cpu": 1.5}), "must be of type integer,string"),
    (
        request(tolerations=[{"key": "gpu", "operator": "Exists", "value": "a"}]),
        "a toleration with the operator Exists takes no value; leave it out",
    ),
    (request(tolerations=[{"value": "a"}]), "a toleration without a key needs the operator Exists"),
    (request(tolerations=[{"key": "gpu", "effect": "Never"}]), 'Unsupported value: "Never"'),
    (request(priority=None), "spec.priority: Required value"),
    (request(priority=2**31), "should be less than or equal to 2147483647"),
    (request(requirements=needs("In")), "the requirement zone In needs at least one value"),
    (request(requirements=needs("NotIn")), "the requirement zone NotIn needs at least one value"),
    (
        request(requirements=needs("Exists", "a")),
        "the requirement zone Exists takes no values; leave them out",
    ),
    (
        request(requirements=needs("DoesNotExist", "a")),
        "the requirement zone DoesNotExist takes no values; leave them out",
    ),
    (request(requirements=needs("Gt")), "zone Gt needs exactly one value, an integer such as 16"),
    (request(requirements=needs("Lt", "1", "2")), "zone Lt needs exactly one value, an integer"),
    (request(requirements=needs("Gt", "abc")), "zone Gt needs exactly one value, an integer"),
    (request(requirements=needs("Same", "a")), 'Unsupported value: "Same": supported values: "In"'),
    (request(requirements=needs("Exists", key="")), "should be at least 1 chars long"),
    (request(interruptionPenalty=-1), PENALTY),
    (request(interruptionPenalty="-0.5"), PENALTY),
    (request(interruptionPenalty="lots"), PENALTY),
    (request(reclamationPenalty="-1"), PENALTY),
    (request(reclamationPenalty="$5"), PENALTY),
    (request(topologySpread=spread(maxSkew=0)), "maxSkew has to be 1 or more"),
    (
        request(topologySpread=spread(maxSkew=2**31)),
        "maxSkew in body should be less than or equal to",
    ),
    (
        request(topologySpread=spread(whenUnsatisfiable="Maybe")),
        'supported values: "DoNotSchedule", "ScheduleAnyway"',
    ),
    (request(coLocation=together(needs("In"))), "the expression zone In needs at least one value"),
    (
        request(coLocation=together(needs("Exists", "a"))),
        "the expression zone Exists takes no values; leave them out",
    ),
    (request(coLocation={}), "spec.coLocation.topologyKey: Required value"),
]


@pytest.mark.parametrize(
    ("wrong", "words"), REFUSED, ids=[json.dumps(wrong["spec"])[:60] for wrong, _ in REFUSED]
)
async def test_a_wrong_request_is_refused_with_words_that_help(
    client: KubeClient, namespace: str, wrong: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidError) as refusal:
        await client.create(ANYTHING, wrong, namespace)
    assert words in str(refusal.value)


async def made(client: KubeClient, namespace: str) -> CapacityRequest:
    whole = request(
        resources={"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": "1", "pods": 1},
        priority=-5,
        requirements=[
            *needs("In", "a", "b"),
            *needs("Gt", "16", key="cores"),
            *needs("Exists", key="node.kubernetes.io/instance-type"),
        ],
        interruptionPenalty="0.5",
        reclamationPenalty=2,
        topologySpread=spread(),
        coLocation=together(needs("NotIn", "x")),
    )
    return await client.create(FULL_REQUESTS, whole, namespace)


async def test_a_good_request_is_taken_whole_and_begins_as_pending(
    client: KubeClient, namespace: str
) -> None:
    await made(client, namespace)
    found = await client.get(FULL_REQUESTS, "one", namespace)
    assert found.spec.resources["cpu"] == 4
    assert found.spec.interruption_penalty == "0.5"
    assert found.spec.requirements[1].values == ("16",)
    assert found.status.phase == "Pending"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("requirements", None),
        ("requirements", needs("In", "c")),
        ("interruptionPenalty", 7),
        ("interruptionPenalty", None),
        ("reclamationPenalty", 7),
        ("topologySpread", []),
        ("coLocation", {"topologyKey": "rack"}),
    ],
)
async def test_what_cannot_change_says_so_and_what_to_do(
    client: KubeClient, namespace: str, field: str, value: object
) -> None:
    await made(client, namespace)
    with pytest.raises(InvalidError) as refusal:
        await client.merge_patch(FULL_REQUESTS, "one", {"spec": {field: value}}, namespace)
    assert f"{field} cannot change; delete the CapacityRequest and create a new one" in str(
        refusal.value
    )


async def test_resources_and_priority_follow_a_resized_pod(
    client: KubeClient, namespace: str
) -> None:
    await made(client, namespace)
    resized = {"spec": {"resources": {"cpu": "8"}, "priority": 1000}}
    found = await client.merge_patch(FULL_REQUESTS, "one", resized, namespace)
    assert (found.spec.resources["cpu"], found.spec.priority) == ("8", 1000)


async def test_acknowledged_is_for_good(client: KubeClient, namespace: str) -> None:
    await made(client, namespace)

    async def say(status: object) -> CapacityRequest:
        return await client.merge_patch(
            FULL_REQUESTS, "one", {"status": status}, namespace, subresource="status"
        )

    condition = {
        "type": "Unmet",
        "status": "True",
        "reason": "STOCK_OUT",
        "message": "no machine of that shape is to be had",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    acknowledged = {"phase": "Acknowledged", "acknowledgedAt": "2026-01-01T00:00:00Z"}
    found = await say({**acknowledged, "conditions": [condition]})
    assert found.status.conditions[0].reason == "STOCK_OUT"
    for back in ({"phase": "Pending"}, {"phase": None}, None):
        with pytest.raises(InvalidError, match="from Pending to Acknowledged and never back"):
            await say(back)
    with pytest.raises(InvalidError, match='supported values: "Pending", "Acknowledged"'):
        await say({"phase": "Lost"})


async def test_requests_are_chosen_by_their_phase(client: KubeClient, namespace: str) -> None:
    for name in ("new", "old"):
        body = request() | {"metadata": {"name": name}}
        await client.create(FULL_REQUESTS, body, namespace)
    done = {"status": {"phase": "Acknowledged"}}
    await client.merge_patch(FULL_REQUESTS, "old", done, namespace, subresource="status")

    async def names(phase: str) -> list[str]:
        fields = f"status.phase={phase}"
        found = await client.list_all(FULL_REQUESTS, namespace, fields=fields)
        return [item.metadata.name for item in found]

    assert await names("Pending") == ["new"]
    assert await names("Acknowledged") == ["old"]


async def test_kubectl_shows_the_columns_that_people_need(
    client: KubeClient, namespace: str, kubernetes: ControlPlane
) -> None:
    await made(client, namespace)
    node = {"metadata": {"name": "un-1"}, "spec": {"resources": {"cpu": 4}}}
    await client.create(UPCOMING_NODES, node)
    status = {"status": {"phase": "Ready", "nodeRef": {"name": "worker-1"}}}
    await client.merge_patch(UPCOMING_NODES, "un-1", status, subresource="status")
    capacity = {
        "metadata": {"name": "spot"},
        "spec": {"availability": "None", "availableCount": 0, "cost": "0.52"},
    }
    await client.create(AVAILABLE_CAPACITIES, capacity)

    def columns(*what: str) -> list[list[str]]:
        printed = kubernetes.kubectl("get", *what, "-n", namespace)
        return [line.split() for line in printed.splitlines() if line.strip()]

    (header, row) = columns("crs", "--field-selector", "status.phase=Pending")
    assert header == ["NAME", "PHASE", "PRIORITY", "AGE"]
    assert row[:3] == ["one", "Pending", "-5"]
    assert len(row) == len(header), "an age that passes while one looks"
    assert [row[:3] for row in columns("upn")] == [
        ["NAME", "PHASE", "NODE"],
        ["un-1", "Ready", "worker-1"],
    ]
    assert [row[:4] for row in columns("avc")] == [
        ["NAME", "AVAILABILITY", "AVAILABLE", "COST"],
        ["spot", "None", "0", "0.52"],
    ]
    fleet = kubernetes.kubectl("get", "fleet", "-n", namespace, "-o", "name").split()
    assert [name.split("/")[1] for name in sorted(fleet)] == ["spot", "one", "un-1"]
    await client.delete(UPCOMING_NODES, "un-1")
    await client.delete(AVAILABLE_CAPACITIES, "spot")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.availability: Required value"),
        ({"availability": "Some"}, 'supported values: "None", "Low", "Medium", "High"'),
        ({"availability": "Low", "availableCount": -1}, "greater than or equal to 0"),
        ({"availability": "Low", "cost": "-1"}, "cost is a quantity of dollars an hour of zero or"),
        ({"availability": "Low", "requirements": needs("In")}, "zone In needs at least one value"),
    ],
)
async def test_wrong_advice_on_capacity_is_refused(
    client: KubeClient, spec: dict[str, object], words: str
) -> None:
    body: dict[str, object] = {"metadata": {"name": "wrong"}, "spec": spec}
    with pytest.raises(InvalidError) as refusal:
        await client.create(AVAILABLE_CAPACITIES.read_as(dict), body)
    assert words in str(refusal.value)


async def test_a_node_in_no_known_phase_is_refused(client: KubeClient) -> None:
    await client.create(UPCOMING_NODES, {"metadata": {"name": "un-odd"}, "spec": {}})
    status = {"status": {"phase": "Lost"}}
    with pytest.raises(InvalidError, match='"Provisioning", "Launched", "Registered", "Ready"'):
        await client.merge_patch(UPCOMING_NODES, "un-odd", status, subresource="status")
    taints = {"spec": {"taints": [{"key": "a", "effect": "Never"}]}}
    with pytest.raises(InvalidError, match='supported values: "NoSchedule"'):
        await client.merge_patch(UPCOMING_NODES, "un-odd", taints)
    await client.delete(UPCOMING_NODES, "un-odd")


async def test_tolerations_can_be_set_once_where_they_are_absent(
    client: KubeClient, namespace: str
) -> None:
    await client.create(ANYTHING, request(), namespace)
    gpu = [{"key": "gpu", "operator": "Exists"}]
    await client.merge_patch(ANYTHING, "one", {"spec": {"tolerations": gpu}}, namespace)
    for other in ([], [{"key": "other", "operator": "Exists"}], None):
        with pytest.raises(InvalidError, match="tolerations cannot change once they are set"):
            await client.merge_patch(ANYTHING, "one", {"spec": {"tolerations": other}}, namespace)
    await client.merge_patch(ANYTHING, "one", {"spec": {"priority": 7}}, namespace)


async def test_an_empty_list_of_tolerations_is_kept(client: KubeClient, namespace: str) -> None:
    made = await client.create(ANYTHING, request(tolerations=[]), namespace)
    assert made["spec"]["tolerations"] == []
