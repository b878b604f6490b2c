"""CapacityRequests added up, and which of them a roll-up carried."""

from typing import Any

import msgspec
import pytest

from bigfleet.model import PenaltyBucket, RequirementOperator
from bigfleet.operator.demand.requests import CapacityRequest, RequestDemand, demand_of
from bigfleet.operator.demand.rollup import Built, RollUpBuilder
from bigfleet.operator.errors import UnreadableRequestError
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubeobjects import capacity_request, read


def demand(**spec: Any) -> RequestDemand:
    return demand_of(read(CapacityRequest, capacity_request(**spec)))


def holding(*documents: dict[str, Any]) -> RollUpBuilder:
    rollups = RollUpBuilder()
    for document in documents:
        rollups.put(read(CapacityRequest, document))
    return rollups


def opened(built: Built) -> capacity.ClusterCapacityNeeds:
    return pb.OperatorMessage.FromString(built.frame).rollup


def told(rollups: RollUpBuilder, timestamp: int) -> list[str]:
    return sorted(entry.key[1] for entry in rollups.taken(timestamp))


def test_equal_requests_are_one_row_with_their_sum_and_their_greatest() -> None:
    rollups = holding(
        capacity_request("a", resources={"cpu": "600m", "memory": "1Gi"}),
        capacity_request("b", resources={"cpu": "1", "memory": "1Gi"}),
        capacity_request("c", namespace="other", resources={"cpu": 1, "memory": "1Gi"}),
    )
    rollup = opened(rollups.build("c-1", 7, {"cpu": 250}))
    assert (rollup.cluster_id, rollup.timestamp_unix_nanos) == ("c-1", 7)
    assert dict(rollup.node_overhead.resources) == {"cpu": "250m"}
    (row,) = rollup.needs
    assert dict(row.aggregate_resources) == {"cpu": "2600m", "memory": "3Gi"}
    assert dict(row.min_unit) == {"cpu": "1", "memory": "1Gi"}
    assert row.size_class


def test_a_large_request_does_not_set_the_min_unit_of_small_ones() -> None:
    rollups = holding(
        capacity_request("a", resources={"cpu": "1"}),
        capacity_request("b", resources={"cpu": "64"}),
    )
    units = sorted(row.min_unit["cpu"] for row in opened(rollups.build("c", 1, {})).needs)
    assert units == ["1", "64"]


def test_no_demand_is_a_rollup_without_rows() -> None:
    message = pb.OperatorMessage.FromString(RollUpBuilder().build("c-1", 1, {}).frame)
    assert message.HasField("rollup")
    assert not message.rollup.needs


def test_penalties_are_rounded_up_and_absent_is_not_zero() -> None:
    found = demand(interruptionPenalty="3", reclamationPenalty=0)
    assert found.profile.interruption is PenaltyBucket.DOLLARS_4
    assert found.profile.reclamation is PenaltyBucket.ZERO
    assert demand().profile.interruption is PenaltyBucket.UNSPECIFIED


def near(selector: dict[str, Any], **more: Any) -> RequestDemand:
    return demand(coLocation={"topologyKey": "zone", "labelSelector": selector}, **more)


def test_a_gang_shares_a_place_and_a_name() -> None:
    one = near({"matchLabels": {"job": "x"}})
    same = near({"matchExpressions": [{"key": "job", "operator": "In", "values": ["x", "x"]}]})
    assert one.group == same.group != ""
    assert [r.operator for r in one.profile.requirements] == [RequirementOperator.SAME]
    assert near({"matchLabels": {"job": "y"}}).group != one.group
    assert near({"matchLabels": {"job": "x"}}, namespace="other").group != one.group
    shared = {"bigfleet.lucy.sh/co-location-namespaces": "default"}
    elsewhere = near({"matchLabels": {"job": "x"}}, namespace="other", annotations=shared)
    assert elsewhere.group == one.group


def test_spreading_that_is_only_a_wish_is_left_out() -> None:
    wish = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    hard = {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    assert [s.key for s in demand(topologySpread=[wish, hard]).profile.spread] == ["rack"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"requirements": [{"key": "a", "operator": "Near"}]}, "bad_operator"),
        ({"requirements": [{"key": "a", "operator": "In"}]}, "bad_operator"),
        ({"requirements": [{"key": "a", "operator": "Gt", "values": ["x"]}]}, "bad_operator"),
        ({"requirements": [{"key": 1}]}, "bad_operator"),
        ({"resources": {"cpu": "many"}}, "bad_quantity"),
        ({"resources": {"cpu": "-1"}}, "bad_quantity"),
        ({"resources": {"cpu": "1e40"}}, "bad_quantity"),
        ({"resources": {"cpu": []}}, "bad_quantity"),
        ({"resources": {}}, "bad_quantity"),
        ({"interruptionPenalty": "expensive"}, "bad_quantity"),
        ({"priority": 2**40}, "bad_operator"),
        ({"topologySpread": [{"topologyKey": "", "maxSkew": 1}]}, "bad_operator"),
        ({"topologySpread": [{"topologyKey": "zone", "maxSkew": 2**31}]}, "bad_operator"),
        ({"topologySpread": [{"topologyKey": "zone", "maxSkew": 2**63}]}, "bad_operator"),
    ],
)
def test_a_bad_request_is_left_out_alone(spec: dict[str, Any], reason: str) -> None:
    rollups = holding(capacity_request("good"))
    with pytest.raises(UnreadableRequestError) as refused:
        rollups.put(read(CapacityRequest, capacity_request("bad", **spec)))
    assert refused.value.reason == reason
    assert len(opened(rollups.build("c", 1, {})).needs) == 1


def test_a_request_that_is_no_text_is_refused_like_any_other() -> None:
    with pytest.raises(UnreadableRequestError):
        demand_of(CapacityRequest(spec=msgspec.Raw(b'{"resources": {"cpu": "\xff"}}')))


def test_a_request_that_became_bad_is_no_longer_counted() -> None:
    rollups = holding(capacity_request("a"))
    with pytest.raises(UnreadableRequestError):
        rollups.put(read(CapacityRequest, capacity_request("a", resources={"cpu": "x"})))
    assert not opened(rollups.build("c", 1, {})).needs


def test_more_than_a_row_can_hold_does_not_spoil_the_rollup() -> None:
    most = {"memory": str(2**61)}
    rollups = holding(*(capacity_request(f"r-{n}", resources=most) for n in range(5)))
    (row,) = opened(rollups.build("c", 1, {})).needs
    assert row.aggregate_resources["memory"] == "2Ei"


def test_a_request_is_told_when_the_rollup_that_had_it_is_taken() -> None:
    rollups = holding(capacity_request("a"))
    rollups.build("c", 1, {})
    rollups.put(read(CapacityRequest, capacity_request("b")))
    assert told(rollups, 1) == ["a"]
    rollups.build("c", 2, {})
    assert told(rollups, 2) == ["b"]
    assert told(rollups, 2) == []


def test_a_later_rollup_speaks_for_those_that_were_never_answered() -> None:
    rollups = holding(capacity_request("a"))
    rollups.build("c", 1, {})
    rollups.put(read(CapacityRequest, capacity_request("b")))
    rollups.build("c", 2, {})
    rollups.put(read(CapacityRequest, capacity_request("c")))
    assert told(rollups, 2) == ["a", "b"]


def test_a_request_that_went_away_or_is_another_now_is_not_told() -> None:
    rollups = holding(capacity_request("a"), capacity_request("b"), capacity_request("d"))
    rollups.build("c", 1, {})
    rollups.remove(("default", "a"))
    rollups.put(read(CapacityRequest, capacity_request("b", uid="another")))
    assert told(rollups, 1) == ["d"]
    rollups.build("c", 2, {})
    assert told(rollups, 2) == ["b"]


def test_what_is_acknowledged_already_is_not_told_again() -> None:
    rollups = holding(capacity_request("a", phase="Acknowledged"), capacity_request("b"))
    rollups.build("c", 1, {})
    assert (len(rollups), rollups.acknowledged) == (2, 1)
    assert told(rollups, 1) == ["b"]


def acknowledged_as(name: str, profile: str, **spec: Any) -> dict[str, Any]:
    """An acknowledged request whose status names a need."""
    document = capacity_request(name, phase="Acknowledged", **spec)
    document["status"]["need"] = {"profile": profile}
    return document


def test_a_request_whose_status_names_an_earlier_need_is_told_again() -> None:
    now = demand(priority=5).profile.fingerprint
    rollups = holding(
        acknowledged_as("right", now, priority=5),
        acknowledged_as("changed", demand().profile.fingerprint, priority=5),
        capacity_request("of-an-older-operator", phase="Acknowledged", priority=5),
    )
    rollups.begin()
    rollups.build("c", 1, {})
    assert rollups.acknowledged == 3
    assert told(rollups, 1) == ["changed"]


def test_rows_an_older_shard_cannot_read_are_left_out_and_not_told() -> None:
    compare = [{"key": "cores", "operator": "Gt", "values": ["8"]}]
    rollups = holding(capacity_request("a"), capacity_request("b", requirements=compare))
    built = rollups.build("c", 1, {}, comparisons=False)
    assert (built.rows, built.left_out) == (1, 1)
    assert told(rollups, 1) == ["a"]
    assert [entry.key[1] for entry in rollups.comparing()] == ["b"]
    assert rollups.build("c", 2, {}).rows == 2
    assert told(rollups, 2) == ["b"]


def test_a_rollup_does_not_speak_for_rows_that_an_earlier_one_had_and_it_leaves_out() -> None:
    compare = [{"key": "cores", "operator": "Gt", "values": ["8"]}]
    rollups = holding(capacity_request("a"), capacity_request("b", requirements=compare))
    rollups.build("c", 1, {})
    rollups.build("c", 2, {}, comparisons=False)
    assert told(rollups, 2) == ["a"]
    rollups.build("c", 3, {})
    assert told(rollups, 3) == ["b"]


def test_changes_are_heard_and_mere_status_is_none() -> None:
    rollups = holding(capacity_request("a"))
    heard: list[int] = []
    rollups.on_change.append(lambda: heard.append(1))
    rollups.put(read(CapacityRequest, capacity_request("a", phase="Acknowledged")))
    assert not heard
    rollups.put(read(CapacityRequest, capacity_request("a", resources={"cpu": "2"})))
    rollups.remove(("default", "a"))
    rollups.remove(("default", "a"))
    assert len(heard) == 2
