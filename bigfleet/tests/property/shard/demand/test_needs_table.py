"""The needs table against a dictionary that does the same the long way round.

Roll-ups of a few clusters come in any order, clusters are forgotten, cycles look in between. The
demand must at every look be what the dictionary says, and be the same object, or keep the order of
its rows, whenever it may.
"""

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.model import Need, NeedKey, aggregate_rows
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.shard.demand.ingest import Ingest
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.wire.needs import need_from_proto
from bigfleet_api.v1alpha1 import capacity_pb2 as pb
from plain_rules import total_order_key
from rollups import rollup, row

CLUSTERS = st.sampled_from(["c-1", "c-2", "c-3"])
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "gpu"]),
    st.sampled_from(["0", "1", "1500m", "2", "3", "1Gi", "144115188075855872"]),
    max_size=2,
)
ROWS = st.builds(
    row,
    st.sampled_from(["a", "b"]),
    priority=st.sampled_from([0, 7]),
    group=st.sampled_from(["", "g"]),
    size_class=st.sampled_from(["", "s"]),
    aggregate=AMOUNTS,
    min_unit=AMOUNTS,
)
DISTINCT = st.lists(
    ROWS,
    max_size=5,
    unique_by=lambda n: (n.requirements[0].values[0], n.priority, n.group, n.size_class),
)
SPOKEN = st.tuples(st.just("speak"), CLUSTERS, DISTINCT)
FACTS = st.dictionaries(
    CLUSTERS,
    st.builds(ClusterFacts, blocked=st.booleans(), overhead=st.just({"disk": 1})),
    max_size=2,
)
LOOKED = st.tuples(st.just("look"), FACTS)
STEPS = st.lists(
    st.one_of(
        SPOKEN, SPOKEN, LOOKED, st.tuples(st.just("forget"), CLUSTERS),
        st.tuples(st.just("prepare"), st.integers(1, 3)),
    ),
    max_size=25,
)  # fmt: skip


@dataclass
class Dictionary:
    """The rows of each cluster by their key."""

    clusters: dict[str, dict[NeedKey, Need]] = field(default_factory=dict)

    def speak(self, cluster: str, rows: list[pb.CapacityNeed], now: int) -> dict[str, set[NeedKey]]:
        before = self.clusters.get(cluster, {})
        after: dict[NeedKey, Need] = {}
        changed = set()
        for need in aggregate_rows(need_from_proto(r, cluster, arrival_ns=now) for r in rows):
            known = before.get(need.key)
            if known is not None:
                shrunk = any(
                    need.aggregate.get(name, 0) < amount for name, amount in known.aggregate.items()
                )
                need = replace(
                    need,
                    arrival_ns=known.arrival_ns,
                    shrunk_at=now + 1000 if shrunk else known.shrunk_at,
                )
                if without_zeros(known) != without_zeros(replace(need, shrunk_at=known.shrunk_at)):
                    changed.add(need.key)
            after[need.key] = need
        self.clusters[cluster] = after
        return {
            "added": set(after) - set(before),
            "changed": changed,
            "removed": set(before) - set(after),
        }

    def needs(self) -> list[Need]:
        return [without_zeros(n) for rows in self.clusters.values() for n in rows.values()]


def without_zeros(need: Need) -> Need:
    """What is asked for none of is not asked for."""
    return replace(
        need,
        aggregate={name: amount for name, amount in need.aggregate.items() if amount},
        min_unit={name: amount for name, amount in need.min_unit.items() if amount},
    )


def needs_in(demand: Demand) -> list[Need]:
    """The rows of a demand as values, in its own order."""
    names = list(demand.symbols.resources)

    def amounts(whole: list[int], milli: list[int]) -> dict[str, int]:
        cells = zip(names, whole, milli, strict=False)
        return {name: w * 1000 + m for name, w, m in cells if w or m}

    found = []
    for at in demand.order.tolist():
        stamp = demand.symbols.stamp(int(demand.identity[at]), 0)
        found.append(
            Need(
                cluster=stamp.cluster,
                profile=demand.symbols.profiles[demand.profile[at]],
                aggregate=amounts(
                    demand.aggregate[at].tolist(), demand.aggregate_milli[at].tolist()
                ),
                min_unit=amounts(demand.unit[at].tolist(), demand.unit_milli[at].tolist()),
                group=stamp.group,
                size_class=stamp.size_class,
                arrival_ns=int(demand.arrival[at]),
                shrunk_at=int(demand.shrunk_at[at]),
            )
        )
        assert stamp.fingerprint == found[-1].profile.fingerprint
    return found


@settings(max_examples=300)
@given(STEPS)
def test_the_table_says_what_the_dictionary_says(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    time = [0]
    table = NeedsTable(Symbols(), lambda: time[0] + 1000)
    oracle, ingest = Dictionary(), Ingest()
    shown: Demand | None = None
    moved = True
    """Whether rows came or went since the last look."""
    resized = False
    for number, step in enumerate(steps):
        time[0] = number + 1
        match step:
            case ("speak", cluster, rows):
                changes = table.apply(
                    cluster, ingest.read(rollup(*rows, cluster=cluster, at=time[0]))
                )
                expected = oracle.speak(cluster, rows, time[0])
                assert set(changes.added) == expected["added"]
                assert set(changes.changed) == expected["changed"]
                assert set(changes.removed) == expected["removed"]
                moved = moved or bool(changes.added or changes.removed)
                resized = resized or bool(changes.changed)
            case ("forget", cluster):
                moved = moved or table.accepted(cluster)
                table.forget(cluster)
                oracle.clusters.pop(cluster, None)
            case ("prepare", rows):
                table.prepare(rows)
            case ("look", facts):
                demand = table.demand(facts)
                assert demand.facts == facts
                assert needs_in(demand) == sorted(oracle.needs(), key=total_order_key)
                if shown is not None:
                    assert (demand.keys is shown.keys) is not moved
                    same = not moved and not resized and facts == shown.facts
                    assert (demand is shown) is same
                    if not moved:
                        assert demand.order is shown.order
                shown, moved, resized = demand, False, False
    assert sorted(table.clusters()) == sorted(oracle.clusters)
    for cluster, rows in oracle.clusters.items():
        assert {n.key: n for n in table.rows(cluster)} == {
            key: without_zeros(n) for key, n in rows.items()
        }


@given(DISTINCT, DISTINCT)
def test_a_demand_once_given_out_never_changes(
    first: list[pb.CapacityNeed], second: list[pb.CapacityNeed]
) -> None:
    table, ingest = NeedsTable(Symbols(), lambda: 5), Ingest()
    table.apply("c-1", ingest.read(rollup(*first)))
    shown = table.demand({})
    before = needs_in(shown)
    table.apply("c-1", ingest.read(rollup(*second, at=2)))
    table.demand({})
    assert needs_in(shown) == before


@given(st.lists(ROWS, max_size=8))
def test_the_quick_way_and_the_long_way_read_the_same(rows: list[pb.CapacityNeed]) -> None:
    taken = Ingest().read(rollup(*rows))
    expected = {n.key: n for n in aggregate_rows(need_from_proto(r, "c-1") for r in rows)}
    assert list(taken.keys) == sorted(expected)
    for at, key in enumerate(taken.keys):
        need = without_zeros(expected[key])
        assert taken.profiles[at] == need.profile
        assert taken.aggregate.of_row(at) == need.aggregate
        assert taken.unit.of_row(at) == need.min_unit
