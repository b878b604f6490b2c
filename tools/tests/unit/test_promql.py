"""The small evaluator against answers that can be worked out by hand."""

import math
import re

import pytest

from promql import QueryError, Samples, evaluate, parse


def samples(**series: list[tuple[float, float]]) -> Samples:
    """Series by what they are called: `calls{code="OK"}` is `calls__code_OK`."""
    made = Samples()
    for text, values in series.items():
        name, _, rest = text.partition("__")
        labels = {"__name__": name, **dict(re.findall(r"([a-z]+)_([A-Za-z0-9]+)", rest))}
        made.add(frozenset(labels.items()), values)
    return made


def steady(per_second: float, until: int = 60) -> list[tuple[float, float]]:
    return [(t, t * per_second) for t in range(0, until + 1, 10)]


WORLD = samples(
    calls__code_OK=steady(2.0),
    calls__code_BAD=steady(0.5),
    term=[(0, 1), (10, 1), (20, 2), (30, 4)],
    took_bucket__le_1=steady(1.0),
    took_bucket__le_2=steady(2.0),
    took_bucket__le_inf=steady(2.0),
    load__pod_a=[(60, 3.0)],
    load__pod_b=[(60, 5.0)],
    limit__pod_a=[(60, 2.0)],
)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("time()", 60),
        ("sum(load)", 8),
        ("max(load) - min(load)", 2),
        ("sum(rate(calls[1m]))", 2.5),
        ('sum(increase(calls{code="OK"}[1m]))', 120),
        ('1 - sum(rate(calls{code="OK"}[1m])) / sum(rate(calls[1m]))', 0.2),
        ("sum(changes(term[1m]))", 2),
        ("sum(load offset 1m)", None),
        ("sum(term offset 30s)", 4),
        ("histogram_quantile(0.25, sum by (le) (rate(took_bucket[1m])))", 0.5),
        ("histogram_quantile(0.75, sum by (le) (rate(took_bucket[1m])))", 1.5),
        ("quantile_over_time(0.5, sum(term)[30s:10s])", 4),
        ("sum(load > 4)", 5),
        ('sum(load{pod!="a"})', 5),
        ('sum(load{pod=~"a|b"})', 8),
        ("sum(load > limit)", 3),
        ("sum(load and on (pod) limit)", 3),
        ("sum(load) > 9", None),
        ("2 + 3 * 2", 8),
        ("(2 + 3) * 2", 10),
    ],
)
def test_answers_are_those_worked_out_by_hand(query: str, answer: float | None) -> None:
    found = evaluate(parse(query), WORLD, 60)
    expected: dict[object, object] = {} if answer is None else {frozenset(): pytest.approx(answer)}
    assert found == expected


def test_a_counter_that_began_again_is_counted_on() -> None:
    made = samples(calls=[(0, 0), (10, 10), (20, 5), (30, 15)])
    found = evaluate(parse("increase(calls[30s])"), made, 30)
    assert found == {frozenset(): pytest.approx(25)}


def test_a_series_counts_for_five_minutes_after_its_last_sample() -> None:
    made = samples(load=[(0, 1)])
    assert evaluate(parse("load"), made, 300)
    assert not evaluate(parse("load"), made, 301)


def test_no_observations_have_no_quantile() -> None:
    made = samples(took_bucket__le_1=steady(0), took_bucket__le_inf=steady(0))
    (found,) = evaluate(parse("histogram_quantile(0.5, rate(took_bucket[1m]))"), made, 60).values()
    assert math.isnan(found)


@pytest.mark.parametrize(
    "query",
    [
        "", "sum(", "avg_over_time(load[5m])", "load[5m", "load{pod}", "rate(sum(load))",
        "load offset", "load load", "sum by pod (load)", "load[5m]", "(load)[5m]", "load and 1",
        "?",
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        evaluate(parse(query), WORLD, 60)
