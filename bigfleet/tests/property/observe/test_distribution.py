"""Histograms against those of the library."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from bigfleet.observe.distribution import Distribution

BOUNDS = st.lists(
    st.floats(0.0001, 10_000.0).map(lambda bound: round(bound, 4)),
    min_size=1, max_size=8, unique=True,
).map(sorted)  # fmt: skip


@given(BOUNDS, st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.0, 20_000.0)), max_size=40))
def test_samples_are_those_of_the_library(
    bounds: list[float], seen: list[tuple[str, float]]
) -> None:
    theirs = Histogram(
        "took_seconds", "Time.", ("what",), buckets=bounds, registry=CollectorRegistry()
    )
    ours = Distribution("took_seconds", "Time.", bounds, ("what",))
    # A bound belongs to its bucket.
    for what, seconds in [*seen, *(("a", bound) for bound in bounds)]:
        theirs.labels(what).observe(seconds)
        ours.labels(what).observe(seconds)
    assert list(ours.collect()) == list(theirs.collect())
