"""What a provider adds to a trace: the call of a shard, and the transition that it began.

    Create, Configure   the call, below the span that its header `traceparent` names
      create, configure the transition, from the moment it was accepted to its end

Calls without the header do not belong to a trace. A transition that goes on after a restart has
lost its trace.
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

HEADER = "traceparent"
MOST = 10_000
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SpanRef:
    """A span by its numbers: of 128 and of 64 bits, neither of them 0."""

    trace: int
    span: int


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time; times in Unix nanoseconds."""

    name: str
    ref: SpanRef
    parent: SpanRef
    start: int
    end: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    is_call: bool = False


class Sink(Protocol):
    """Where spans go; never waits."""

    def record(self, span: Span) -> None:
        """A span is over."""
        ...

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        ...


class Call:
    """A call that is part of a trace."""

    __slots__ = ("began", "parent", "ref")

    def __init__(self, parent: SpanRef, ref: SpanRef, began: int) -> None:
        self.parent, self.ref, self.began = parent, ref, began


class Traces:
    """Records spans; without a sink nothing is looked at."""

    def __init__(
        self,
        sink: Sink | None = None,
        rng: random.Random | None = None,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._sink, self._now = sink, now
        self._rng = rng or random.Random()
        self._begun: dict[str, SpanRef] = {}
        """The call with which a machine's transition began."""

    @property
    def on(self) -> bool:
        """Whether anything is recorded."""
        return self._sink is not None

    def came(self, headers: Sequence[tuple[str, str | bytes]], machine: str) -> Call | None:
        """A call for a machine came; None where it is part of no trace."""
        header = next((value for key, value in headers if key == HEADER), "")
        found = _TRACEPARENT.fullmatch(header) if isinstance(header, str) else None
        if self._sink is None or found is None or not int(found[3], 16) & 1:
            return None
        parent = SpanRef(int(found[1], 16), int(found[2], 16))
        call = Call(parent, self._child(parent), self._now())
        # Before it is answered: its transition may be over by then.
        self._begun[machine] = call.ref
        while len(self._begun) > MOST:
            del self._begun[next(iter(self._begun))]
        return call

    def answered(self, call: Call, method: str, machine: str, code: str, error: str) -> None:
        """The call was answered with a status."""
        if self._sink is None:
            return
        if error:
            self._begun.pop(machine, None)
        keys = {"bigfleet.machine": machine, "rpc.method": method, "rpc.grpc.status": code}
        now = self._now()
        self._sink.record(
            Span(method, call.ref, call.parent, call.began, now, keys, error, is_call=True)
        )

    def ended(self, machine: str, kind: str, started: float, outcome: str, error: str) -> None:
        """A transition that began then, in Unix seconds, has ended."""
        parent = self._begun.pop(machine, None) if self._begun else None
        if self._sink is None or parent is None:
            return
        keys = {"bigfleet.machine": machine, "bigfleet.outcome": outcome}
        span = Span(
            f"{kind} transition", self._child(parent), parent, int(started * _NS), self._now(),
            keys, error,
        )  # fmt: skip
        self._sink.record(span)

    def close(self) -> None:
        """Send what waits."""
        if self._sink is not None:
            self._sink.close()

    def _child(self, parent: SpanRef) -> SpanRef:
        return SpanRef(parent.trace, self._rng.getrandbits(64) or 1)
