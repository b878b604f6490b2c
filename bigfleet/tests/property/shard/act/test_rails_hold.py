"""For any sequence of cycles: the cap holds in every window, gangs are whole, nothing is lost."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import ActionKind
from bigfleet.shard.act.rails import ReclaimWindow, cap_of, capped, limited, units
from bigfleet.shard.machines.orders import Order
from executing_values import order

K = ActionKind
WINDOW = 10.0
FRACTION = 0.05


@st.composite
def cycles(draw: st.DrawFn) -> list[tuple[float, dict[str, int], list[Order]]]:
    """Cycles at any pace: when, how many machines each cluster has, what was decided."""
    now, found = 0.0, []
    for number in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0.0, 0.2, 1.0, 3.3, 9.9, 10.0, 30.0]))
        counts = {name: draw(st.integers(0, 200)) for name in ("c-1", "c-2")}
        wanted = draw(st.lists(st.sampled_from(["c-1", "c-2"]), max_size=30))
        orders = [
            order(K.RECLAIM, f"{number}-{place}", cluster) for place, cluster in enumerate(wanted)
        ]
        found.append((now, counts, orders))
    return found


@given(cycles())
def test_no_window_sees_more_reclaims_than_its_cap(
    happened: list[tuple[float, dict[str, int], list[Order]]],
) -> None:
    window = ReclaimWindow(FRACTION, WINDOW)
    reclaimed: list[tuple[float, str]] = []
    for now, counts, orders in happened:
        cut = capped(orders, window.budget(counts, now))
        window.spend(cut.kept, now)
        assert sorted(o.machine for o in [*cut.kept, *cut.held]) == sorted(
            o.machine for o in orders
        )
        reclaimed += [(now, each.cluster) for each in cut.kept]
        recent = Counter(cluster for at, cluster in reclaimed if now - WINDOW < at <= now)
        granted = {each.cluster for each in cut.kept}
        for cluster in granted:
            assert recent[cluster] <= cap_of(counts[cluster], FRACTION)
        for each in cut.held:
            # Held back only where the window is really full.
            assert recent[each.cluster] >= cap_of(counts[each.cluster], FRACTION)


GANGS = st.lists(
    st.tuples(
        st.sampled_from([K.BOOTSTRAP, K.PROVISION, K.PREEMPT, K.RECLAIM, K.DELETE, K.KEEP]),
        st.sampled_from(["", "", "g-1", "g-2", "g-3"]),
        st.sampled_from(["c-1", "c-2"]),
    ),
    max_size=40,
)


@given(GANGS, st.integers(1, 30))
def test_the_limit_cuts_no_gang_and_keeps_as_many_as_fit(
    wanted: list[tuple[ActionKind, str, str]], most: int
) -> None:
    orders = [
        order(kind, f"m-{place}", cluster, group=group)
        for place, (kind, group, cluster) in enumerate(wanted)
    ]
    cut = limited(orders, most)
    assert Counter(map(id, [*cut.kept, *cut.held])) == Counter(map(id, orders))
    kept = set(map(id, cut.kept))
    for unit in units(orders):
        assert len({id(each) in kept for each in unit}) == 1
    if cut.kept:
        first = units(orders)[0]
        assert len(cut.kept) <= max(most, len(first))
    for unit in units(cut.held):
        # Nothing is held back that would have fitted beside what was kept.
        assert len(cut.kept) + len(unit) > most


@given(GANGS)
def test_a_limit_that_is_wide_enough_holds_nothing_back(
    wanted: list[tuple[ActionKind, str, str]],
) -> None:
    orders = [order(kind, f"m-{n}", cluster) for n, (kind, _, cluster) in enumerate(wanted)]
    assert limited(orders, len(orders)).kept == orders
