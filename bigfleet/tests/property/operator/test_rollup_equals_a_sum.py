"""Whatever comes, changes and goes: a roll-up is the sum of what is there."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Need, aggregate_rows
from bigfleet.operator.demand.requests import CapacityRequest, demand_of
from bigfleet.operator.demand.rollup import RollUpBuilder
from bigfleet.wire.needs import need_from_proto
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubeobjects import capacity_request, read

names = st.sampled_from(["a", "b", "c", "d", "e"])
specs = st.fixed_dictionaries(
    {
        "resources": st.dictionaries(
            st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
            st.sampled_from(["1", "2", "3", "500m", "1Gi", "0"]),
            min_size=1,
        ),
        "priority": st.sampled_from([0, 1000]),
    },
    optional={
        "interruptionPenalty": st.sampled_from(["0", "1", "3", "4"]),
        "requirements": st.just([{"key": "zone", "operator": "In", "values": ["b", "a"]}]),
        "coLocation": st.just({"topologyKey": "zone", "labelSelector": {}}),
    },
)
steps = st.lists(st.tuples(names, st.none() | specs), max_size=20)


def rows(needs: list[Need]) -> set[tuple[Any, ...]]:
    return {
        (*n.key, tuple(sorted(n.aggregate.items())), tuple(sorted(n.min_unit.items())))
        for n in needs
    }


@given(steps, st.data())
def test_a_rollup_is_the_sum_of_what_is_there(
    changes: list[tuple[str, dict[str, Any] | None]], data: st.DataObject
) -> None:
    rollups = RollUpBuilder()
    there: dict[str, CapacityRequest] = {}
    for stamp, (name, spec) in enumerate(changes, start=1):
        if spec is None:
            rollups.remove(("default", name))
            there.pop(name, None)
        else:
            there[name] = read(CapacityRequest, capacity_request(name, **spec))
            rollups.put(there[name])
        if data.draw(st.booleans()):
            rollups.build("c", stamp, {})
    frame = rollups.build("c", 1000, {}).frame
    told = [need_from_proto(row, "") for row in pb.OperatorMessage.FromString(frame).rollup.needs]
    expected = aggregate_rows(demand_of(request).need() for request in there.values())
    assert rows(told) == rows(expected)


@given(steps, st.lists(st.booleans(), max_size=20))
def test_every_request_that_stays_is_told_exactly_once_when_all_is_taken(
    changes: list[tuple[str, dict[str, Any] | None]], builds: list[bool]
) -> None:
    rollups = RollUpBuilder()
    there: set[str] = set()
    told: list[str] = []
    for stamp, (name, spec) in enumerate(changes, start=1):
        if spec is None:
            rollups.remove(("default", name))
            there.discard(name)
        elif name not in there:
            rollups.put(read(CapacityRequest, capacity_request(name, uid=str(stamp), **spec)))
            there.add(name)
        if stamp <= len(builds) and builds[stamp - 1]:
            rollups.build("c", stamp, {})
    rollups.build("c", 1000, {})
    told += [entry.key[1] for entry in rollups.taken(1000)]
    assert sorted(told) == sorted(there)
    assert not rollups.taken(1000)
