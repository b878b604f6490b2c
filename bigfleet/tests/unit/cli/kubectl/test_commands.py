"""`kubectl bigfleet`: one paragraph that follows from the cluster, and one command to run next."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bigfleet.cli import output
from bigfleet.cli.kubectl.context import Plugin
from bigfleet.cli.kubectl.main import app
from bigfleet.kube import ForbiddenError, UnreachableError
from bigfleet.kube.errors import ApiStatus
from bigfleet.kube.transport import ApiRequest
from bigfleet.model import parse_resources, size_class
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from ctlfleet import NOW, SECOND, CannedShard, deaf, serving
from ctlworld import explained, need, unmet
from kubefake import FakeApiServer
from kubeobjects import capacity_request, node, pod

PROFILE = "5f1e0a77c0ffee5f1e0a77"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T07:50:00Z"}


def kubectl(server: FakeApiServer, *words: str) -> Result:
    """What the plugin printed, at a fixed moment."""
    output.out.width = output.err.width = 200
    plugin = Plugin(connect=lambda _options: server.client(), now_unix_s=lambda: NOW / SECOND)
    variables: dict[str, str | None] = {
        "NO_COLOR": "1", "BIGFLEETCTL_SHARD_ADDR": None, "BIGFLEETCTL_COORDINATOR": None,
        "BIGFLEET_CLUSTER_ID": None,
    }  # fmt: skip
    return CliRunner(env=variables).invoke(app, ["-n", "default", *words], obj=plugin)


def lines(ended: Result) -> tuple[str, str]:
    """The paragraph and the command to run next."""
    assert ended.exit_code == 0, ended.stderr
    *_, text, follow_up = ended.stdout.splitlines()
    assert follow_up.startswith("Next: ")
    return text, follow_up.removeprefix("Next: ")


def a_request(name: str = "cr-web", owner: str = "web", **status: Any) -> dict[str, Any]:
    """The CapacityRequest of a Pod."""
    made = capacity_request(name, priority=100, resources={"cpu": "2", "pods": "1"})
    made["metadata"]["labels"] = {"bigfleet.lucy.sh/owned-by-pod": f"uid-{owner}"}
    made["metadata"]["creationTimestamp"] = "2027-01-15T07:59:50Z"
    owned = {"kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
    made["metadata"]["ownerReferences"] = [owned]
    made["status"] |= status
    return made


def acknowledged(reason: str = "", message: str = "", **named: str) -> dict[str, Any]:
    """One that a shard has taken into its demand."""
    conditions = [{"type": "Unmet", "status": "True", "reason": reason, "message": message}]
    return a_request(
        phase="Acknowledged", need={"profile": PROFILE}, conditions=conditions if reason else [],
        **named,
    )  # fmt: skip


def an_upcoming(name: str, phase: str, on: str = "", **status: str) -> dict[str, Any]:
    """A machine of the need."""
    labels = {"node.kubernetes.io/instance-type": "m5", "topology.kubernetes.io/zone": "eu-1a"}
    return {
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        "metadata": {"name": f"un-{name}", "labels": {"bigfleet.lucy.sh/profile": PROFILE}},
        "spec": {"labels": labels},
        "status": {
            "phase": phase, "provisioningStartTime": "2027-01-15T07:59:00Z",
            **({"nodeRef": {"name": on}} if on else {}), **status,
        },
    }  # fmt: skip


def an_operator(shard: str = "127.0.0.1:1", ready: int = 1) -> dict[str, Any]:
    """The Deployment of the chart."""
    arguments = ["operator", "--cluster-id=shop", f"--shard-addr={shard}"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "op",
            "namespace": "bigfleet",
            "labels": {"app.kubernetes.io/name": "bigfleet-operator"},
        },
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"args": arguments}]}}},
        "status": {"readyReplicas": ready},
    }


def server_with(*documents: dict[str, Any]) -> FakeApiServer:
    server = FakeApiServer()
    for document in documents:
        server.put(document)
    return server


def a_lack() -> read.NeedView:
    """What the shard says of the need, with a remedy that it tried."""
    view = unmet(need("shop", 100, "2"), "NO_MATCHING_SUPPLY", 3, cpu="2")
    view.profile_fingerprint = PROFILE
    view.need.size_class = size_class(parse_resources({"cpu": "2", "pods": "1"}))
    explained(view, "its requirement pool In [gpu]", ("drop pool In [gpu]", "met"))
    return view


def test_a_pod_without_a_request_names_the_pod_controller() -> None:
    text, follow_up = lines(kubectl(server_with(pod("web")), "why", "pod/web"))
    assert text.startswith("Pod web in namespace default waits for a node and has no Capacity")
    assert follow_up.startswith("kubectl get deployments -A -l app.kubernetes.io/name=bigfleet-un")


@pytest.mark.parametrize(
    ("special", "words"),
    [
        ({"annotations": {"bigfleet.lucy.sh/ignore": "true"}}, "its owner leaves it out"),
        ({"schedulingGates": [{"name": "wait"}]}, "it is held by a scheduling gate"),
        ({"owner": "DaemonSet"}, "every node runs it by itself"),
        ({"phase": "Succeeded"}, "it has ended"),
    ],
)
def test_a_pod_that_is_not_demand_says_why(special: dict[str, Any], words: str) -> None:
    text, _ = lines(kubectl(server_with(pod("web", **special)), "why", "pod/web"))
    assert text == f"Pod web in namespace default asks BigFleet for nothing, because {words}."


def test_a_request_that_no_shard_acknowledged_leads_to_the_operator() -> None:
    server = server_with(pod("web"), a_request(phase="Pending"), an_operator(ready=0))
    text, follow_up = lines(kubectl(server, "why", "pod/web"))
    assert "asks for cpu 2 (CapacityRequest cr-web, priority 100). No shard has" in text
    assert text.endswith("No replica of the operator op is ready.")
    assert follow_up == "kubectl logs -n bigfleet deployment/op --tail=20"


def test_a_node_on_its_way_is_counted_with_its_expected_time() -> None:
    earlier = an_upcoming("m-1", "Ready", "n-1", provisioningStartTime="2027-01-15T07:48:00Z")
    server = server_with(
        pod("web"), acknowledged(), earlier, an_upcoming("m-2", "Launched"),
        node("n-1") | {"status": {"conditions": [READY]}}, an_operator(),
    )  # fmt: skip
    text, follow_up = lines(kubectl(server, "why", "pod/web"))
    assert "A node is on the way for the demand of this Pod (m5 in eu-1a)." in text
    assert "It is expected at 08:01:00 UTC, in about 1m" in text
    assert follow_up == f"kubectl get upcomingnodes -l bigfleet.lucy.sh/profile={PROFILE} --watch"


def test_without_the_shard_the_condition_gives_the_reason() -> None:
    with deaf() as nowhere:
        server = server_with(
            pod("web"), acknowledged("NoMatchingSupply", "no machine fits it"), an_operator(nowhere)
        )
        text, follow_up = lines(kubectl(server, "why", "pod/web"))
        assert "It is unmet: no machine fits it." in text
        assert "The shard could not be asked: " in text
        assert follow_up == (
            f"bigfleetctl --shard-addr={nowhere} inspect-needs --unmet --cluster=shop "
            f"--profile={PROFILE}"
        )


def test_with_the_shard_blockers_and_tried_remedies_are_told() -> None:
    shard = CannedShard(read.ShardStatus(shard_id="s-1"), needs=[a_lack()])
    with serving(shard) as address:
        server = server_with(pod("web"), acknowledged("X", "y"), an_operator(address))
        text, follow_up = lines(kubectl(server, "why", "pod", "web"))
    assert "Its need lacks cpu 2: no machine fits it, in whatever state." in text
    assert "Blocked by: its requirement pool In [gpu]." in text
    assert text.endswith("The shard tried what would help: drop pool In [gpu] (met).")
    assert follow_up.startswith(f"bigfleetctl --shard-addr={address} inspect-needs")
    request = shard.last("InspectNeeds")
    assert (request.cluster_id, request.profile_fingerprint) == ("shop", PROFILE)
    assert request.with_remedies


def test_a_need_of_the_same_profile_and_another_size_says_nothing_about_the_pod() -> None:
    other = a_lack()
    other.need.size_class = size_class(parse_resources({"cpu": "64", "pods": "1"}))
    shard = CannedShard(read.ShardStatus(shard_id="s-1"), needs=[other])
    with serving(shard) as address:
        server = server_with(pod("web"), acknowledged(), an_operator(address))
        text, _ = lines(kubectl(server, "why", "pod/web"))
    assert "lacks" not in text


def test_a_met_need_leads_to_the_scheduler() -> None:
    waiting = pod("web")
    waiting["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    server = server_with(waiting, acknowledged(), an_upcoming("m-1", "Ready", "n-1"), node("n-1"))
    text, follow_up = lines(kubectl(server, "why", "pod/web"))
    assert "BigFleet has brought 1 node for its need, and none is missing." in text
    assert "The scheduler has not placed the Pod" in text
    assert follow_up == "kubectl describe pod web -n default"


def test_a_pod_on_a_node_leads_to_the_node() -> None:
    server = server_with(pod("web", node="n-1", phase="Running"), acknowledged())
    text, follow_up = lines(kubectl(server, "why", "pod/web"))
    assert text.startswith("Pod web in namespace default runs on node n-1.")
    assert follow_up == "kubectl bigfleet why node/n-1"


def test_a_node_of_ours_names_machine_need_and_pods() -> None:
    server = server_with(
        node("n-1", labels={"bigfleet.lucy.sh/machine-id": "m-1"}), acknowledged(),
        an_upcoming("m-1", "Ready", "n-1"), pod("web", node="n-1", phase="Running"),
    )  # fmt: skip
    text, follow_up = lines(kubectl(server, "why", "node/n-1"))
    assert text == (
        "Node n-1 is machine m-1 (m5 in eu-1a), which BigFleet brought for need 5f1e0a77c0ff: "
        "1 CapacityRequest of priority 100 at most. It is Ready and runs 1 Pod. BigFleet does not "
        "take it back at present."
    )
    assert follow_up == "kubectl get pods -A --field-selector spec.nodeName=n-1"


def test_a_node_that_is_taken_back_says_why_in_the_words_of_its_event() -> None:
    leaving = node("n-1", labels={"bigfleet.lucy.sh/machine-id": "m-1"})
    leaving["spec"]["taints"] = [{"key": "bigfleet.lucy.sh/reclaiming", "effect": "NoSchedule"}]
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"uid": "uid-n-1"}, "reason": "Reclaiming",
        "message": "BigFleet takes this node back: no demand of this cluster needs it.",
    }  # fmt: skip
    server = server_with(leaving, an_upcoming("m-1", "Ready", "n-1"), event)
    text, _ = lines(kubectl(server, "why", "node/n-1"))
    assert text.endswith("BigFleet takes this node back: no demand of this cluster needs it.")


def test_a_foreign_node_is_never_taken_back() -> None:
    text, _ = lines(kubectl(server_with(node("old")), "why", "node/old"))
    assert "was not brought by BigFleet" in text


def test_a_machine_that_has_not_joined_is_found_by_its_upcoming_node() -> None:
    failed = an_upcoming("m-3", "Failed", lastError="no capacity")
    text, _ = lines(kubectl(server_with(failed), "why", "node/un-m-3"))
    assert "It has failed and does not become a node" in text
    assert text.endswith("Its last error: no capacity.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("why", "pod/gone"), "there is no Pod 'gone' in namespace default"),
        (("why", "node/gone"), "there is no Node and no UpcomingNode 'gone'"),
        (("why", "service/web"), "is neither pod/NAME nor node/NAME"),
        (("why", "web"), "is neither pod/NAME nor node/NAME"),
    ],
)
def test_what_is_not_there_is_one_line_with_an_exit_code(
    words: tuple[str, ...], message: str
) -> None:
    ended = kubectl(server_with(), *words)
    assert ended.exit_code != 0
    (line,) = ended.stderr.splitlines()
    assert line.startswith("kubectl bigfleet: ")
    assert message in line


def test_an_api_server_that_is_away_is_one_line() -> None:
    server = server_with()
    server.refuse = lambda _request: UnreachableError("connection refused")
    ended = kubectl(server, "requests")
    assert ended.exit_code == 1
    assert ended.stderr == "kubectl bigfleet: the API server: connection refused\n"


def test_what_a_user_may_not_read_is_left_out_and_named() -> None:
    def refuse(request: ApiRequest) -> ForbiddenError | None:
        hidden = request.resource in ("upcomingnodes", "nodes", "deployments")
        return ForbiddenError(ApiStatus(code=403, message="no")) if hidden else None

    server = server_with(pod("web"), acknowledged("StockOut", "the provider has run out"))
    server.refuse = refuse
    text, follow_up = lines(kubectl(server, "why", "pod/web"))
    assert "It is unmet: the provider has run out." in text
    assert "you may not list upcomingnodes; you may not list deployments" in text
    assert follow_up == "kubectl describe capacityrequest cr-web -n default"


def test_requests_lists_those_that_wait_first() -> None:
    server = server_with(
        acknowledged(name="cr-a", owner="a"), a_request("cr-b", "b"),
        acknowledged("Quota", "used up", name="cr-c", owner="c"),
    )  # fmt: skip
    ended = kubectl(server, "requests")
    text, follow_up = lines(ended)
    assert text == ("3 CapacityRequests in namespace default: 1 unmet, 1 not acknowledged, 1 met.")
    rows = [line.split()[0] for line in ended.stdout.splitlines() if line.startswith(" cr-")]
    assert rows == ["cr-c", "cr-b", "cr-a"]
    assert follow_up == "kubectl bigfleet why pod/c -n default"


def test_upcoming_counts_by_direction() -> None:
    server = server_with(
        an_upcoming("m-1", "Ready", "n-1"), an_upcoming("m-2", "Launched"),
        an_upcoming("m-3", "Draining", "n-3"), an_upcoming("m-4", "Failed"),
    )  # fmt: skip
    text, follow_up = lines(kubectl(server, "upcoming"))
    assert text == ("1 machine on the way into this cluster, 1 in it, 1 on the way out, 1 failed.")
    assert follow_up == "kubectl bigfleet why node/un-m-2"


def test_plan_adds_up_needs_and_takes_verdicts_from_the_shard() -> None:
    shard = CannedShard(read.ShardStatus(shard_id="s-1"), needs=[a_lack()])
    with serving(shard) as address:
        server = server_with(
            acknowledged(name="cr-a", owner="a"), acknowledged(name="cr-b", owner="b"),
            a_request("cr-c", "c"), an_upcoming("m-2", "Launched"), an_operator(address),
        )  # fmt: skip
        ended = kubectl(server, "plan", "--output", "json")
    document = json.loads(ended.stdout)
    assert document["answer"] == (
        "This cluster has 1 need, 1 of them unmet. BigFleet brings 1 machine and takes 0 back. "
        "1 CapacityRequest not acknowledged yet."
    )
    (row,) = document["needs"]
    assert (row["requests"], row["asks"], row["coming"]) == (2, {"cpu": "4"}, 1)
    assert row["verdict"] == "unmet: NO_MATCHING_SUPPLY, lacks cpu 2"
    assert document["next"] == "kubectl bigfleet why pod/a -n default"
    assert not shard.last("InspectNeeds").with_remedies


def test_options_stand_anywhere_and_the_namespace_is_kept() -> None:
    there = pod("web", namespace="shop")
    text, _ = lines(kubectl(server_with(there), "why", "-n", "shop", "pod/web"))
    assert "in namespace shop" in text


def test_a_cluster_without_our_kinds_says_how_to_install_them() -> None:
    server = server_with(pod("web"))
    missing = ApiStatus(code=404, message="the server could not find the requested resource")

    def refuse(request: ApiRequest) -> Any:
        from bigfleet.kube.errors import error_of

        return error_of(missing) if request.resource == "capacityrequests" else None

    server.refuse = refuse
    ended = kubectl(server, "requests")
    assert "BigFleet's CRDs are not installed" in ended.stderr


class CheckedServer(FakeApiServer):
    """One that also says its version and its kinds, and what a user may do."""

    version = "31"
    allowed = True

    def call(self, request: ApiRequest) -> bytes:
        if request.path == "/version":
            reply = {"major": "1", "minor": self.version, "gitVersion": f"v1.{self.version}.0"}
            return json.dumps(reply).encode()
        if request.path == "/apis/bigfleet.lucy.sh/v1alpha1":
            names = ("capacityrequests", "upcomingnodes", "availablecapacities")
            return json.dumps({"resources": [{"name": name} for name in names]}).encode()
        if request.resource == "selfsubjectaccessreviews":
            return json.dumps({"status": {"allowed": self.allowed}}).encode()
        return super().call(request)


def test_doctor_finds_nothing_wrong_in_a_cluster_that_works() -> None:
    shard = CannedShard(read.ShardStatus(shard_id="s-1"), needs=[a_lack()])
    with serving(shard) as address:
        server = CheckedServer()
        server.put(an_operator(address))
        server.put(acknowledged())
        ended = kubectl(server, "doctor", "--output", "json")
    assert ended.exit_code == 0
    found = {each["about"]: each for each in json.loads(ended.stdout)}
    assert found["Operator"]["text"] == "bigfleet/op: 1 of 1 replica ready"
    assert found["Demand"]["text"] == "1 CapacityRequest, 0 not acknowledged"
    assert found["Shard"]["text"] == "answers: 1 need of cluster shop, 1 unmet"
    assert found["Pod controller"]["verdict"] == "note"


def test_doctor_says_what_is_wrong_and_what_to_do() -> None:
    server = CheckedServer()
    server.allowed = False
    server.put(an_operator(ready=0))
    waiting = a_request()
    waiting["metadata"]["creationTimestamp"] = "2027-01-15T07:50:00Z"
    server.put(waiting)
    ended = kubectl(server, "doctor")
    assert ended.exit_code == 1
    assert "wrong Operator: bigfleet/op: 0 of 1 replica ready" in ended.stdout
    assert "-> kubectl describe deployment op -n bigfleet" in ended.stdout
    assert "1 not acknowledged, the oldest for 10 min" in ended.stdout
    assert "may not list nodes" in ended.stdout
    assert ended.stderr.startswith("kubectl bigfleet: 2 of ")
