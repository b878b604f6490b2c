"""Traces: one per change of demand, from the roll-up that brought it to the node that serves it.

    ids    how a span is named across processes, and how that travels
    spans  what is recorded, and the port through which
    otlp   to a collector, over gRPC; imported only where traces are switched on

Off unless an endpoint is given. Which spans there are is told beside the parts that record them:
`operator.traces`, `shard.traces`, and a provider's kit.
"""

from bigfleet.observe.tracing.ids import SpanRef, parse_traceparent, rollup_ref, traceparent
from bigfleet.observe.tracing.spans import (
    Attributes,
    Span,
    SpanKind,
    Spans,
    TracingError,
    open_spans,
)

__all__ = [
    "Attributes",
    "Span",
    "SpanKind",
    "SpanRef",
    "Spans",
    "TracingError",
    "open_spans",
    "parse_traceparent",
    "rollup_ref",
    "traceparent",
]
