"""What a provider records of a trace that a shard sends along."""

import grpc

from bigfleet_providerkit.service.server import _status_name
from bigfleet_providerkit.tracing.traces import Span, SpanRef, Traces

HEADERS = (("traceparent", f"00-{5:032x}-{6:016x}-01"),)


class Sink:
    """Keeps spans."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self.closed = False

    def record(self, span: Span) -> None:
        self.all.append(span)

    def close(self) -> None:
        self.closed = True


def test_a_call_hangs_below_the_shards_span_and_its_transition_below_the_call() -> None:
    sink = Sink()
    traces = Traces(sink, now=lambda: 4_000_000_000)
    call = traces.came(HEADERS, "m-1")
    assert call is not None
    traces.answered(call, "Create", "m-1", "OK", "")
    traces.ended("m-1", "create", 3.0, "success", "")
    rpc, transition = sink.all
    assert (rpc.name, rpc.parent, rpc.is_call) == ("Create", SpanRef(5, 6), True)
    assert (transition.name, transition.parent) == ("create transition", rpc.ref)
    assert (transition.start, transition.end) == (3_000_000_000, 4_000_000_000)


def test_a_refused_call_begins_no_transition() -> None:
    sink = Sink()
    traces = Traces(sink)
    call = traces.came(HEADERS, "m-1")
    assert call is not None
    traces.answered(call, "Create", "m-1", "FAILED_PRECONDITION", "fenced")
    traces.ended("m-1", "create", 3.0, "success", "")
    assert [one.error for one in sink.all] == ["fenced"]


def test_calls_without_the_header_or_that_are_not_kept_do_not_belong_to_a_trace() -> None:
    traces = Traces(Sink())
    assert traces.came((("other", "x"),), "m-1") is None
    assert traces.came((("traceparent", "nonsense"),), "m-1") is None
    assert traces.came((("traceparent", f"00-{5:032x}-{6:016x}-00"),), "m-1") is None
    assert not Traces().on
    assert Traces().came(HEADERS, "m-1") is None


def test_closing_sends_what_waits() -> None:
    sink = Sink()
    Traces(sink).close()
    assert sink.closed


def test_a_status_has_its_name_however_grpc_tells_it() -> None:
    assert _status_name(grpc.StatusCode.NOT_FOUND) == "NOT_FOUND"
    assert _status_name(9) == "FAILED_PRECONDITION"
    assert _status_name(None) == _status_name(0) == "CANCELLED"
