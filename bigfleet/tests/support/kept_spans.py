"""Spans kept in memory, numbered in the order in which they began."""

from __future__ import annotations

import itertools

from bigfleet.observe.tracing import Span, SpanRef


class KeptSpans:
    """Keeps every trace, or none."""

    def __init__(self, *, keep: bool = True) -> None:
        self.all: list[Span] = []
        self._keep = keep
        self._numbers = itertools.count(1)

    def keeps(self, trace: int) -> bool:
        """Whether spans of this trace are recorded."""
        return self._keep

    def child(self, parent: SpanRef) -> SpanRef:
        """A span that begins now."""
        return SpanRef(parent.trace, next(self._numbers))

    def record(self, span: Span) -> None:
        """A span is over."""
        self.all.append(span)

    def close(self) -> None:
        """Nothing waits."""

    def names(self) -> list[str]:
        """In the order in which they ended."""
        return [span.name for span in self.all]

    def one(self, name: str) -> Span:
        """The only span of this name."""
        (found,) = [span for span in self.all if span.name == name]
        return found
