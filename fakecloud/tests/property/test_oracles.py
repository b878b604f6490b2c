"""For all histories: lagging reads, buckets, pools and pages against what is obviously right."""

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bigfleet_fakecloud import Life, OutOfStock, Resource, Throttled, VirtualClock, page
from bigfleet_fakecloud.behaviour.delays import Delays
from bigfleet_fakecloud.behaviour.limits import Pool, Throttle
from bigfleet_fakecloud.state.collection import Collection
from bigfleet_fakecloud.state.timeline import Timeline

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30)


@given(STEPS, st.integers(0, 20))
def test_a_lagging_list_is_the_truth_of_that_many_seconds_ago(
    steps: Sequence[tuple[int, int]], lag: int
) -> None:
    """Every step makes, changes or removes object n, then time passes."""
    clock, delays = VirtualClock(0.0), Delays(lag_list=float(lag))
    things = Collection("thing", Life("on"), Timeline(clock), delays, random.Random(1))
    truths: dict[int, dict[str, object]] = {}
    used: set[str] = set()
    moment = 0
    for number, wait in steps:
        ref = f"t-{number}"
        if things.truth(ref) is None:
            if ref not in used:
                things.create(ref, {"n": len(truths)})
                used.add(ref)
        elif number % 3:
            things.edit(ref, {"n": len(truths)})
        else:
            things.vanish(ref)
        truth: dict[str, object] = {t.ref: t.fields["n"] for t in things.everything()}
        for second in range(moment, moment + wait + 1):
            truths[second] = truth
        moment += wait
        clock.advance(wait)
        seen = {t.ref: t.fields["n"] for t in things.list()}
        assert seen == truths.get(moment - lag, {})


def refusal(throttle: Throttle, now: float) -> float | None:
    """None when a call is taken, else when to come again."""
    try:
        throttle.take("Get", now)
    except Throttled as refused:
        return refused.retry_after
    return None


@given(st.floats(0.1, 50), st.integers(1, 20), st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_no_window_lets_more_calls_through_than_burst_and_rate_allow(
    rate: float, burst: int, waits: list[float]
) -> None:
    throttle, now, taken = Throttle(), 0.0, list[float]()
    throttle.limit("*", rate, burst)
    for wait in waits:
        now += wait
        patience = refusal(throttle, now)
        if patience is not None:
            now += patience
            assert refusal(throttle, now) is None
        taken.append(now)
    for first, start in enumerate(taken):
        for last in range(first, len(taken)):
            allowed = burst + rate * (taken[last] - start)
            assert last - first + 1 <= allowed + 1e-3


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=60), st.integers(0, 8))
def test_a_pool_counts_like_a_list_of_who_holds_what(
    steps: Sequence[tuple[int, int]], limit: int
) -> None:
    """Amount 0 releases, any other amount is asked for."""
    pool, held = Pool(OutOfStock), list[tuple[str, int]]()
    key = ("type", "zone")
    pool.limit(key, limit)
    for number, amount in steps:
        ref = f"h-{number}"
        if amount == 0:
            pool.release(ref)
            held = [item for item in held if item[0] != ref]
        else:
            fits = sum(n for _, n in held) + amount <= limit
            try:
                pool.hold(ref, key, amount)
            except OutOfStock:
                assert not fits
            else:
                assert fits
                held.append((ref, amount))
        assert pool.held(key) == sum(n for _, n in held) <= limit


def thing(number: int) -> Resource:
    return Resource(f"t-{number:03d}", "on", 0, 0, 0, {}, {})


@given(
    st.sets(st.integers(0, 40)),
    st.integers(1, 7),
    st.lists(st.sets(st.integers(0, 40)), max_size=9),
)
def test_pages_show_everything_that_stayed_and_nothing_twice(
    present: set[int], size: int, changes: list[set[int]]
) -> None:
    """Between two pages some objects appear or disappear."""
    stayed, shown, cursor = set(present), list[str](), None
    for change in [*changes, *[set[int]()] * 50]:
        part = page([thing(number) for number in present], size, cursor)
        assert len(part.items) <= size
        shown += [item.ref for item in part.items]
        cursor = part.cursor
        if cursor is None:
            break
        present = present ^ change
        stayed &= present
    assert cursor is None
    assert len(shown) == len(set(shown))
    assert {thing(number).ref for number in stayed} <= set(shown)
