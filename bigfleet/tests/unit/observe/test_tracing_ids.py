"""Processes that never spoke of a span name it the same way."""

import pytest

from bigfleet.observe.tracing import (
    SpanRef,
    TracingError,
    open_spans,
    parse_traceparent,
    rollup_ref,
    traceparent,
)
from bigfleet.observe.tracing.ids import is_kept


def test_a_roll_up_has_the_same_span_wherever_it_is_looked_at() -> None:
    assert rollup_ref("c-1", 7) == rollup_ref("c-1", 7)
    others = {rollup_ref("c-1", 8), rollup_ref("c-2", 7), rollup_ref("c-1", 7)}
    assert len({one.trace for one in others}) == len({one.span for one in others}) == 3


def test_a_span_survives_the_header() -> None:
    ref = SpanRef(2**127 + 5, 9)
    text = traceparent(ref)
    assert text == "00-80000000000000000000000000000005-0000000000000009-01"
    assert parse_traceparent(text) == ref
    assert parse_traceparent(text + "0123abcd, an id of a request") == ref


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0123456789abcdef0123456789abcdef",
        "00-80000000000000000000000000000005-0000000000000009-00",
        "00-00000000000000000000000000000000-0000000000000009-01",
        "01-80000000000000000000000000000005-0000000000000009-01",
    ],
)
def test_what_names_no_recorded_span_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_share_of_traces_is_kept_and_by_everybody_the_same() -> None:
    traces = [rollup_ref("c-1", n).trace for n in range(4000)]
    kept = {one for one in traces if is_kept(one, 0.25)}
    assert 800 < len(kept) < 1200
    assert kept <= {one for one in traces if is_kept(one, 0.5)}
    assert all(is_kept(one, 1.0) for one in traces)
    assert not any(is_kept(one, 0.0) for one in traces)


def test_an_endpoint_without_a_scheme_is_refused() -> None:
    with pytest.raises(TracingError, match="http://host:4317"):
        open_spans("collector:4317", 1.0, service="s", version="1", instance="i")
