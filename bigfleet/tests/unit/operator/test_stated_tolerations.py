"""When a cluster states what its requests tolerate, and what its rows are meanwhile."""

from typing import Any

import pytest

from bigfleet.model import Toleration
from bigfleet.operator.demand.requests import CapacityRequest, demand_of
from bigfleet.operator.demand.rollup import RollUpBuilder
from bigfleet.operator.errors import UnreadableRequestError
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubeobjects import capacity_request, read

GPU = [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def request(name: str, *, controlled: bool = True, **spec: Any) -> CapacityRequest:
    document = capacity_request(name, **spec)
    if controlled:
        document["metadata"]["ownerReferences"] = [{"kind": "Pod", "controller": True}]
    return read(CapacityRequest, document)


def sent(rollups: RollUpBuilder, timestamp: int = 1) -> capacity.ClusterCapacityNeeds:
    frame = rollups.build("c-1", timestamp, {}).frame
    return pb.OperatorMessage.FromString(frame).rollup


def holding(*requests: CapacityRequest) -> RollUpBuilder:
    rollups = RollUpBuilder("amd64", "linux")
    for one in requests:
        rollups.put(one)
    return rollups


def test_tolerations_are_stated_when_each_request_of_a_controller_has_them() -> None:
    rollups = holding(request("a", tolerations=GPU), request("b"))
    assert not sent(rollups).tolerations_stated
    assert rollups.without_tolerations == 1
    rollups.put(request("b", tolerations=[]))
    assert sent(rollups).tolerations_stated


def test_a_request_of_a_person_without_tolerations_tolerates_none() -> None:
    rollups = holding(request("a", tolerations=GPU), request("b", controlled=False))
    assert sent(rollups).tolerations_stated
    assert sorted(len(row.tolerations) for row in sent(rollups).needs) == [0, 1]


def test_where_no_request_says_anything_nothing_is_stated() -> None:
    assert not sent(holding(request("a", controlled=False))).tolerations_stated
    assert not sent(holding()).tolerations_stated


def test_a_request_that_goes_no_longer_counts() -> None:
    rollups = holding(request("a", tolerations=GPU), request("b"))
    rollups.remove(("default", "b"))
    assert sent(rollups).tolerations_stated
    rollups.remove(("default", "a"))
    assert not sent(rollups).tolerations_stated


def test_while_they_are_not_stated_rows_are_what_they_were() -> None:
    before = sent(holding(request("a"), request("b"))).needs
    during = sent(holding(request("a", tolerations=GPU), request("b"))).needs
    assert list(during) == list(before)
    (after,) = sent(holding(request("a", tolerations=GPU), request("b", tolerations=GPU))).needs
    assert [t.key for t in after.tolerations] == ["nvidia.com/gpu"]
    after.ClearField("tolerations")
    assert [after] == list(before)


def test_rows_change_in_one_roll_up_and_back() -> None:
    rollups = holding(*(request(name, tolerations=GPU) for name in "abc"))
    assert [len(row.tolerations) for row in sent(rollups).needs] == [1]
    rollups.put(request("old"))
    rows = sent(rollups, 2).needs
    assert [len(row.tolerations) for row in rows] == [0]
    assert dict(rows[0].aggregate_resources) == {"cpu": "4"}


def test_requests_whose_row_changed_are_told_of_the_new_one() -> None:
    rollups = holding(request("a", tolerations=GPU, phase="Acknowledged"), request("b"))
    sent(rollups)
    assert rollups.acknowledged == 1
    rollups.put(request("b", tolerations=GPU))
    sent(rollups, 2)
    assert rollups.acknowledged == 1
    assert sorted(entry.key[1] for entry in rollups.taken(2)) == ["a", "b"]


def test_defaults_of_architecture_and_system_are_sent() -> None:
    rollup = sent(holding())
    assert (rollup.default_arch, rollup.default_os) == ("amd64", "linux")


def test_tolerations_are_read_in_canonical_form() -> None:
    both = [{"key": "b"}, *GPU, {"key": "b", "operator": "Equal"}]
    found = demand_of(request("a", tolerations=both))
    assert found.tolerations == (
        Toleration.of("b", "Equal"),
        Toleration.of("nvidia.com/gpu", "Exists"),
    )
    assert not found.profile.tolerations
    assert found.with_tolerations().profile.tolerations == found.tolerations
    assert found.with_tolerations().without_tolerations().profile == found.profile


def test_a_toleration_that_cannot_be_spoils_its_request_alone() -> None:
    with pytest.raises(UnreadableRequestError, match="Exists takes no value"):
        demand_of(request("a", tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]))
