"""What the typed calls send, and how they read what comes back."""

import json

import msgspec
import pytest

from api_server import ApiServer, lists, pod, refuses, says
from bigfleet.kube import ConflictError, Eviction, InvalidError, Object, ThrottledError
from bigfleet.kube.fleet import CAPACITY_REQUESTS, UPCOMING_NODES, UpcomingNode
from bigfleet.kube.objects import NODES, PODS
from kube_clients import client_of

CR = "/apis/bigfleet.lucy.sh/v1alpha1/namespaces/ns/capacityrequests"
EVICT = "/api/v1/namespaces/ns/pods/a/eviction"
REQUEST: dict[str, object] = {
    "metadata": {"name": "one", "namespace": "ns"},
    "spec": {"resources": {"cpu": 4, "memory": "8Gi"}, "priority": 7},
}


async def test_created_objects_say_what_they_are(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("POST", CR, says(REQUEST))
        made = await client.create(CAPACITY_REQUESTS.read_as(dict), REQUEST, "ns")
    sent = api.seen[0].json
    assert (sent["apiVersion"], sent["kind"]) == ("bigfleet.lucy.sh/v1alpha1", "CapacityRequest")
    assert made["spec"] == {"resources": {"cpu": 4, "memory": "8Gi"}, "priority": 7}
    assert "status" not in made


async def test_structs_are_sent_as_kubernetes_writes_them(api: ApiServer) -> None:
    document = {
        "metadata": {"name": "un-1"},
        "status": {"phase": "Ready", "providerID": "kwok://1", "nodeRef": {"name": "n"}},
    }
    node = msgspec.convert(document, UpcomingNode)
    assert node.status.provider_id == "kwok://1"
    async with client_of(api) as client:
        api.on("POST", UPCOMING_NODES.path(), says(document))
        await client.create(UPCOMING_NODES, node)
    assert api.seen[0].json == {
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        **document,
    }


async def test_apply_names_the_manager_and_takes_fields_over(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("PATCH", f"{CR}/one/status", says(REQUEST))
        body = {"status": {"phase": "Acknowledged"}}
        await client.apply(
            CAPACITY_REQUESTS, "one", body, "ns", manager="operator", subresource="status"
        )
    request = api.seen[0]
    assert request.query == {"fieldManager": "operator", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.json["metadata"] == {"name": "one", "namespace": "ns"}


@pytest.mark.parametrize(
    ("reason", "code", "outcome"),
    [("DisruptionBudget", 429, Eviction.BLOCKED), ("", 404, Eviction.GONE)],
)
async def test_an_eviction_is_answered_in_one_word(
    api: ApiServer, reason: str, code: int, outcome: Eviction
) -> None:
    async with client_of(api) as client:
        api.on("POST", EVICT, refuses(code, causes=[reason] if reason else [], after="10"))
        assert await client.evict("a", "ns") is outcome
    assert len(api.seen) == 1


async def test_a_pod_under_two_budgets_is_blocked_and_holds_up_no_other(api: ApiServer) -> None:
    words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
    async with client_of(api) as client:
        api.on("POST", EVICT, refuses(500, message=f"{words}not support."))
        assert await client.evict("a", "ns", uid="u") is Eviction.BLOCKED
    assert len(api.seen) == 1


async def test_an_eviction_that_the_server_has_no_time_for_is_tried_again(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("POST", EVICT, refuses(429, "TooManyRequests", after="1"), says({"kind": "Status"}))
        assert await client.evict("a", "ns", uid="u", grace_seconds=5) is Eviction.EVICTED
    options = api.seen[1].json["deleteOptions"]
    assert options == {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 5}


async def test_a_pod_of_another_uid_is_gone(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("POST", EVICT, refuses(409, "Conflict", "the UID in the precondition"))
        assert await client.evict("a", "ns", uid="u") is Eviction.GONE
        with pytest.raises(ConflictError):
            await client.evict("a", "ns")


async def test_a_pod_that_changed_under_its_eviction_is_not_gone(api: ApiServer) -> None:
    words = "the ResourceVersion in the precondition (7) does not match the one in record (8)"
    async with client_of(api) as client:
        api.on("POST", EVICT, refuses(409, "Conflict", words))
        with pytest.raises(ConflictError):
            await client.evict("a", "ns", uid="u")


async def test_deleting_what_is_gone_is_no_error(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("DELETE", f"{CR}/one", says({"kind": "Status"}), refuses(404, "NotFound"))
        assert await client.delete(CAPACITY_REQUESTS, "one", "ns", uid="u") is True
        assert await client.delete(CAPACITY_REQUESTS, "one", "ns") is False
    assert api.seen[0].json["preconditions"] == {"uid": "u"}


async def test_a_change_starts_over_when_another_client_wrote_first(api: ApiServer) -> None:
    path = "/api/v1/nodes/n"
    async with client_of(api) as client:
        api.on("GET", path, *(says(pod("n", version)) for version in (1, 2, 3)))
        conflict = refuses(409, "Conflict", "the object has been modified")
        api.on("PATCH", path, conflict, conflict, says(pod("n", 4)))
        written = await client.change(
            NODES,
            "n",
            lambda seen: {"metadata": {"labels": {"at": seen.metadata.resource_version}}},
        )
    assert written.metadata.resource_version == "4"
    patches = [request.json["metadata"] for request in api.seen if request.method == "PATCH"]
    assert patches == [
        {"labels": {"at": version}, "resourceVersion": version} for version in ("1", "2", "3")
    ]


async def test_a_storm_of_conflicts_ends_with_the_conflict(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("GET", "/api/v1/nodes/n", says(pod("n", 1)))
        api.on("PATCH", "/api/v1/nodes/n", refuses(409, "Conflict", "modified"))
        with pytest.raises(ConflictError, match="modified"):
            await client.change(NODES, "n", lambda _: {"spec": {}}, tries=4)
    assert [request.method for request in api.seen].count("PATCH") == 4


async def test_nothing_to_change_is_nothing_to_write(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("GET", "/api/v1/nodes/n", says(pod("n", 1)))
        found = await client.change(NODES, "n", lambda _: None)
    assert found.metadata.name == "n"
    assert [request.method for request in api.seen] == ["GET"]


async def test_lists_are_chosen_by_labels_and_fields(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("GET", CR, lists(version=1))
        fields = "status.phase=Pending"
        assert await client.list_all(CAPACITY_REQUESTS, "ns", labels="a=b", fields=fields) == []
    assert api.seen[0].query["labelSelector"] == "a=b"
    assert api.seen[0].query["fieldSelector"] == fields


async def test_the_next_page_is_on_its_way_while_one_is_read(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on(
            "GET",
            PODS.path(),
            lists(pod("a", 1), version=9, token="b"),
            lists(pod("b", 2), version=9),
        )
        pages = client.list_pages(PODS)
        first = await anext(pages)
        await api.until(lambda: len(api.seen) == 2)
        rest = [item.metadata.name async for page in pages for item in page.items]
    assert [item.metadata.name for item in first.items] + rest == ["a", "b"]
    assert api.queries("continue") == ["", "b"]


async def test_json_patches_are_sent_whole_and_refused_whole(api: ApiServer) -> None:
    operations = [{"op": "test", "path": "/spec/unschedulable", "value": True}]
    async with client_of(api) as client:
        api.on("PATCH", "/api/v1/nodes/n", refuses(422, "Invalid", "no"))
        with pytest.raises(InvalidError):
            await client.json_patch(NODES, "n", operations)
    assert json.loads(api.seen[0].body) == operations
    assert api.seen[0].headers["Content-Type"] == "application/json-patch+json"


async def test_a_throttle_that_lasts_is_an_error_at_the_deadline(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("GET", "/api/v1/nodes/n", refuses(429, "TooManyRequests", "slow down"))
        with pytest.raises(Exception, match="slow down") as raised:
            await client.get(NODES, "n", deadline=0.2)
    assert isinstance(raised.value.__cause__, ThrottledError)


async def test_names_cannot_leave_their_path(api: ApiServer) -> None:
    async with client_of(api) as client:
        with pytest.raises(Exception, match="nothing at"):
            await client.get(PODS.read_as(Object), "../secrets", "ns")
    assert api.seen[0].path == "/api/v1/namespaces/ns/pods/..%2Fsecrets"
