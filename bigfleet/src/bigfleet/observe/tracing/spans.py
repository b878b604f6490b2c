"""What is recorded of a span, and the port to the part that keeps it.

A span is recorded once, when it is over; its ref exists from its beginning, so that others can name
it as their parent. Recording puts it into a queue and never waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from bigfleet.observe.tracing.ids import SpanRef

Attributes = Mapping[str, str | int | float]


class TracingError(ValueError):
    """Traces were asked for and cannot be sent."""


class SpanKind(Enum):
    """Who waits for whom."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time; times in Unix nanoseconds."""

    name: str
    ref: SpanRef
    parent: SpanRef | None
    start: int
    end: int
    attributes: Attributes = field(default_factory=dict)
    kind: SpanKind = SpanKind.INTERNAL
    error: str = ""


class Spans(Protocol):
    """Where spans go."""

    def keeps(self, trace: int) -> bool:
        """Whether spans of this trace are recorded."""

    def child(self, parent: SpanRef) -> SpanRef:
        """A span that begins now, in the trace of another."""

    def record(self, span: Span) -> None:
        """A span is over."""

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""


def open_spans(
    endpoint: str, ratio: float, *, service: str, version: str, instance: str
) -> Spans | None:
    """Spans to the collector at an endpoint; None where there is none.

    Nothing of OpenTelemetry is imported before: it takes half a second.
    """
    if not endpoint:
        return None
    try:
        from bigfleet.observe.tracing.otlp import OtlpSpans
    except ImportError as error:
        raise TracingError(
            f"--otlp-endpoint {endpoint}: {error}; install what it needs: bigfleet[tracing]"
        ) from error
    return OtlpSpans(endpoint, ratio, service=service, version=version, instance=instance)
