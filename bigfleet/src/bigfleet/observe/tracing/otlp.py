"""Spans to an OpenTelemetry collector: OTLP over gRPC, in batches, from a thread of its own.

A collector that is away costs the spans of that time and nothing else: the queue is bounded and
drops. Only where an endpoint is given is this module, and with it OpenTelemetry, imported.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace.status import Status, StatusCode

from bigfleet.observe.tracing.ids import SpanRef, is_kept
from bigfleet.observe.tracing.spans import Span, SpanKind, TracingError

_EVERY_MS: Final = 1000.0
_DEADLINE_SECONDS: Final = 2.0
_LAST_SECONDS: Final = 3.0
_KINDS: Final = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}
_RECORDED: Final = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class OtlpSpans:
    """Keeps a share of all traces."""

    def __init__(
        self, endpoint: str, ratio: float, *, service: str, version: str, instance: str
    ) -> None:
        if not endpoint.startswith(("http://", "https://")):
            raise TracingError(
                f"--otlp-endpoint {endpoint!r}: write http://host:4317, or https:// for TLS"
            )
        # Every attempt that is repeated would be a line otherwise, for as long as the collector is
        # away.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        self._ratio = ratio
        self._chance = random.Random()
        self._resource = Resource.create(
            {
                "service.namespace": "bigfleet",
                "service.name": service,
                "service.version": version,
                "service.instance.id": instance,
            }
        )
        self._scope = InstrumentationScope("bigfleet", version)
        exporter = OTLPSpanExporter(
            endpoint=endpoint,
            insecure=endpoint.startswith("http://"),
            timeout=_DEADLINE_SECONDS,
        )
        self._sending = BatchSpanProcessor(exporter, schedule_delay_millis=_EVERY_MS)

    def keeps(self, trace: int) -> bool:
        """Whether spans of this trace are recorded."""
        return is_kept(trace, self._ratio)

    def child(self, parent: SpanRef) -> SpanRef:
        """A span that begins now, in the trace of another."""
        return SpanRef(parent.trace, self._chance.getrandbits(64) or 1)

    def record(self, span: Span) -> None:
        """A span is over."""
        self._sending.on_end(
            ReadableSpan(
                span.name,
                context=_context(span.ref),
                parent=None if span.parent is None else _context(span.parent),
                resource=self._resource,
                attributes=dict(span.attributes),
                kind=_KINDS[span.kind],
                instrumentation_scope=self._scope,
                status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
                start_time=span.start,
                end_time=max(span.start, span.end),
            )
        )

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        ending = threading.Thread(target=self._sending.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(_LAST_SECONDS)


def _context(ref: SpanRef) -> trace.SpanContext:
    return trace.SpanContext(ref.trace, ref.span, is_remote=False, trace_flags=_RECORDED)
