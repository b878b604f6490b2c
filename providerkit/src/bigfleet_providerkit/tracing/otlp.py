"""Spans to an OpenTelemetry collector: OTLP over gRPC, in batches, from a thread of its own.

Imported only where `--otlp-endpoint` is given: OpenTelemetry takes half a second to import. A
collector that is away costs the spans of that time and nothing else.
"""

import logging
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace.status import Status, StatusCode

from bigfleet_providerkit.errors import StartError
from bigfleet_providerkit.tracing.traces import Span, SpanRef

EVERY_MS = 1000.0
DEADLINE_SECONDS = 2.0
LAST_SECONDS = 3.0
_RECORDED = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class OtlpSink:
    """Sends the spans of one provider."""

    def __init__(self, endpoint: str, provider: str, version: str) -> None:
        if not endpoint.startswith(("http://", "https://")):
            raise StartError(
                f"--otlp-endpoint {endpoint!r}: write http://host:4317, or https:// for TLS"
            )
        # Otherwise every repeated attempt would be a line while no collector listens.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        self._resource = Resource.create(
            {
                "service.namespace": "bigfleet",
                "service.name": "bigfleet-provider",
                "service.version": version,
                "service.instance.id": provider,
            }
        )
        self._scope = InstrumentationScope("bigfleet-provider", version)
        exporter = OTLPSpanExporter(
            endpoint=endpoint, insecure=endpoint.startswith("http://"), timeout=DEADLINE_SECONDS
        )
        self._sending = BatchSpanProcessor(exporter, schedule_delay_millis=EVERY_MS)

    def record(self, span: Span) -> None:
        """A span is over."""
        kind = trace.SpanKind.SERVER if span.is_call else trace.SpanKind.INTERNAL
        self._sending.on_end(
            ReadableSpan(
                span.name,
                context=_context(span.ref),
                parent=_context(span.parent),
                resource=self._resource,
                attributes=dict(span.attributes),
                kind=kind,
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
        ending.join(LAST_SECONDS)


def _context(ref: SpanRef) -> trace.SpanContext:
    return trace.SpanContext(ref.trace, ref.span, is_remote=False, trace_flags=_RECORDED)
