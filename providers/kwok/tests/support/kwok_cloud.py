"""An API server with kwok on one page, imitated for tests: nodes, pods and evictions.

    python providers/kwok/tests/support/kwok_cloud.py --addr 127.0.0.1:8001

A node becomes Ready a moment after it was registered. Pods are put there by a test, with the field
`kept` for one that a disruption budget protects; an evicted pod goes a moment later.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
    Conflict,
    Injected,
    Life,
    NotFound,
    Problem,
    Reply,
    Resource,
    Then,
    Verb,
    main,
)

NODE = Life(
    first="new",
    steps={"new": Then("ready", after=0.05)},
    verbs={"delete": Verb.move("new", "ready", "lost", to="gone")},
    events={"lose": "lost"},
    vanishes={"gone": 0.0},
)
POD = Life(
    first="running",
    steps={"leaving": Then("gone", after=0.05)},
    verbs={"evict": Verb.move("running", to="leaving", stays=("leaving",))},
    vanishes={"gone": 0.0},
)


class ApiServer:
    """The routes, and what they share."""

    def __init__(self, seed: int = 1) -> None:
        self.cloud = Cloud("kwok", seed=seed, dialect=status)
        self.nodes = self.cloud.collection("nodes", NODE)
        self.pods = self.cloud.collection("pods", POD)
        self.tokens: set[str] = set()
        self._made = 0
        routes: list[tuple[str, str, str, Callable[[Call], Reply]]] = [
            ("POST", "/api/v1/nodes", "CreateNode", self.create_node),
            ("GET", "/api/v1/nodes", "ListNodes", self.list_nodes),
            ("GET", "/api/v1/nodes/{name}", "GetNode", self.get_node),
            ("PATCH", "/api/v1/nodes/{name}", "PatchNode", self.patch_node),
            ("DELETE", "/api/v1/nodes/{name}", "DeleteNode", self.delete_node),
            ("GET", "/api/v1/pods", "ListPods", self.list_pods),
            ("POST", "/api/v1/namespaces/{ns}/pods/{name}/eviction", "EvictPod", self.evict),
        ]
        for method, path, op, handler in routes:
            self.cloud.route(method, path, op)(self._authorised(handler))

    def create_node(self, call: Call) -> Reply:
        """Registered, and Ready a moment later."""
        body = call.only("apiVersion", "kind", "metadata", "spec", "status")
        name = str(mapping(body["metadata"])["name"])
        if self._node(name) is not None:
            raise Conflict(f'nodes "{name}" already exists')
        self._made += 1
        made = self.nodes.create(f"{name}.{self._made}", {"name": name, "object": body})
        return Reply(201, node_shown(made))

    def list_nodes(self, call: Call) -> Reply:
        """All nodes with a label."""
        key, _, value = call.query.get("labelSelector", "").partition("=")
        items = [node_shown(node) for node in self.nodes.list()]
        fitting = [
            item for item in items if item["metadata"]["labels"].get(key) == value or not key
        ]
        return Reply(body={"kind": "NodeList", "metadata": {}, "items": fitting})

    def get_node(self, call: Call) -> Reply:
        """One node."""
        return Reply(body=node_shown(self._must(call)))

    def patch_node(self, call: Call) -> Reply:
        """A merge patch of the spec."""
        if call.headers.get("content-type") != "application/merge-patch+json":
            raise BadRequest("this imitation takes merge patches")
        node, change = self._must(call), mapping(call.only("spec")["spec"])
        body = dict(mapping(node.fields["object"]))
        body["spec"] = {**mapping(body["spec"]), **change}
        return Reply(body=node_shown(self.nodes.edit(node.ref, {"object": body})))

    def delete_node(self, call: Call) -> Reply:
        """Gone at once."""
        self.nodes.act(self._must(call).ref, "delete")
        return Reply(body={"kind": "Status", "status": "Success"})

    def list_pods(self, call: Call) -> Reply:
        """The pods on a node."""
        _, _, name = call.query["fieldSelector"].partition("spec.nodeName=")
        found = self.pods.list(lambda pod: pod.fields["node"] == name)
        return Reply(
            body={"kind": "PodList", "metadata": {}, "items": [pod_shown(p) for p in found]}
        )

    def evict(self, call: Call) -> Reply:
        """The pod goes a moment later, unless a budget keeps it."""
        call.only("apiVersion", "kind", "metadata", "deleteOptions")
        ref = f"{call.params['ns']}/{call.params['name']}"
        pod = self.pods.get(ref)
        if pod.fields["kept"]:
            raise Injected(429, "TooManyRequests", "Cannot evict pod: the disruption budget")
        self.pods.act(ref, "evict")
        return Reply(201, {"kind": "Status", "status": "Success"})

    def put_pod(
        self, name: str, node: str, *, kept: bool = False, owner: str = "ReplicaSet"
    ) -> None:
        """A pod that runs on a node; for tests in the same process."""
        self.pods.create(f"default/{name}", {"node": node, "kept": kept, "owner": owner})

    def shown(self) -> list[dict[str, Any]]:
        """The nodes as kubectl would show them."""
        return [node_shown(node) for node in self.nodes.everything() if node.state != "gone"]

    def _node(self, name: str) -> Resource | None:
        found = self.nodes.list(lambda node: node.fields["name"] == name and node.state != "gone")
        return found[0] if found else None

    def _must(self, call: Call) -> Resource:
        node = self._node(call.params["name"])
        if node is None:
            raise NotFound(f'nodes "{call.params["name"]}" not found')
        return node

    def _authorised(self, handler: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
        def checked(call: Call) -> Reply:
            given = call.headers.get("authorization", "").removeprefix("Bearer ")
            if self.tokens and given not in self.tokens:
                raise Injected(401, "Unauthorized", "Unauthorized")
            return handler(call)

        return checked


def mapping(value: object) -> Mapping[str, Any]:
    """A part of a body that is a map."""
    if not isinstance(value, Mapping):
        raise BadRequest(f"{value!r} is not a map")
    return value


def node_shown(node: Resource) -> dict[str, Any]:
    """A node with the condition that kwok writes."""
    body = dict(mapping(node.fields["object"]))
    ready = "True" if node.state == "ready" else "False"
    body["status"] = {**mapping(body["status"]), "conditions": [{"type": "Ready", "status": ready}]}
    return body


def pod_shown(pod: Resource) -> dict[str, Any]:
    """A pod as far as a drain looks at it."""
    namespace, _, name = pod.ref.partition("/")
    metadata: dict[str, Any] = {"namespace": namespace, "name": name}
    metadata["ownerReferences"] = [{"kind": pod.fields["owner"]}]
    if pod.state == "leaving":
        metadata["deletionTimestamp"] = "2026-11-16T00:00:00Z"
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}}


def status(problem: Problem) -> Reply:
    """How an API server words a problem."""
    body = {"kind": "Status", "status": "Failure", "message": problem.text, "code": problem.status}
    return Reply(problem.status, body)


if __name__ == "__main__":
    main(lambda seed: ApiServer(seed).cloud)
