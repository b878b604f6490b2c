"""For all fleets: counts, filters and sums agree with looking at each machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet_api.v1alpha1 import provider_pb2
from bigfleet_dashboard.cost import cost_document, spend_per_hour
from bigfleet_dashboard.state.needs import NeedFilter, row_of, select
from worlds_of_machines import fleet_of, machine, need

MACHINES = st.lists(
    st.builds(
        lambda n, state, kind, price, zone, cluster, penalty: machine(
            f"m-{n}",
            state,
            kind=kind,
            price=price,
            zone=zone,
            cluster=cluster if state in (4, 5, 6) else "",
            penalty=penalty,
        ),
        st.integers(0, 10**6),
        st.integers(1, 8),
        st.integers(1, 4),
        st.sampled_from([0.0, 0.12, 0.38, 7.5]),
        st.sampled_from("abc"),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["", "0", "0.5", "inf"]),
    ),
    max_size=40,
    unique_by=lambda m: m.id,
)


@given(MACHINES)
def test_every_machine_is_in_the_map_once_and_counted_once(
    machines: list[provider_pb2.Machine],
) -> None:
    fleet = fleet_of(sorted(machines, key=lambda m: m.id))
    shown = [fleet.map.machine(i) for i in range(len(fleet.map))]
    assert sorted(str(m["id"]) for m in shown) == sorted(m.id for m in machines)
    for name, count in fleet.map.by_state().items():
        assert count == sum(m["state"] == name for m in shown)
    assert list(fleet.map.cls) == sorted(fleet.map.cls, key=lambda c: fleet.map.classes[int(c)])


@given(MACHINES)
def test_spend_is_the_sum_over_machines_that_exist(machines: list[provider_pb2.Machine]) -> None:
    fleet = fleet_of(machines)
    wanted = sum(m.price_per_hour for m in machines if m.state not in (1, 8))
    assert spend_per_hour(fleet.map) == pytest.approx(wanted)
    document = cost_document(fleet.map)
    for part in ("by_capacity_type", "by_state", "by_cluster"):
        values = document[part]
        assert isinstance(values, dict)
        assert sum(values.values()) == pytest.approx(wanted, abs=1e-3)
    assert document["dollars_per_hour"] == pytest.approx(wanted, abs=1e-3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xy"),
            st.sampled_from([0, 100, 1000, 10**6]),
            st.sampled_from([0, 1, 102]),
        ),
        max_size=20,
    ),
    st.sampled_from(["", "x"]),
    st.sampled_from(["", "met", "unmet"]),
    st.sampled_from(["", "batch", "critical"]),
)
def test_a_filter_keeps_exactly_what_passes(
    drawn: list[tuple[str, int, int]], cluster: str, verdict: str, group: str
) -> None:
    rows = [
        row_of("s", need(c, p, reason=r, fingerprint=str(n))) for n, (c, p, r) in enumerate(drawn)
    ]
    kept = select(rows, NeedFilter(cluster=cluster, verdict=verdict, priority_class=group))
    wanted = {
        row.key
        for row in rows
        if cluster in ("", row.cluster)
        and verdict in ("", "met" if row.satisfied else "unmet")
        and group in ("", row.priority_class)
    }
    assert {row.key for row in kept} == wanted
    assert [row.satisfied for row in kept] == sorted(row.satisfied for row in kept)
