"""What a shard adds to a trace: the roll-up it took, what it decided, and what became of that.

    roll-up (the operator's)
      ingest               reading and taking the roll-up that changed the cluster's rows
      decide               the cycle that ordered something for the cluster
        Provision          the order, from decision to outcome; the provider's Create hangs below
          machine created  Create taken until the machine is seen Idle
        decide             the cycle that found it Idle
          Bootstrap        the operator's data and the provider's Configure hang below
            machine joined Configure taken until the machine is seen Configured

Nothing happens per row or per machine of a cycle: only orders for capacity and what changes of the
machines they are about. Without spans none of this is called; `NoTraces` stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Protocol

from bigfleet.decision import ActionKind
from bigfleet.model import Machine, MachineState
from bigfleet.observe.process import Clock
from bigfleet.observe.tracing import (
    Attributes,
    Span,
    SpanKind,
    SpanRef,
    Spans,
    rollup_ref,
    traceparent,
)
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.machines.orders import Order

S = MachineState
TRACED: Final = frozenset({ActionKind.PROVISION, ActionKind.BOOTSTRAP})
MOST: Final = 20_000
"""Machines of which it is remembered to which trace they belong; the oldest is forgotten."""
_LOST: Final = (None, S.SPECULATIVE, S.DRAINING, S.DELETING, S.FAILED)
_NOTHING: Final = nullcontext()
_current: ContextVar[str] = ContextVar("bigfleet_traceparent", default="")


def carried() -> str:
    """The span in which this is done, as others are told of it; empty for none."""
    return _current.get()


def headers() -> tuple[tuple[str, str], ...] | None:
    """The same as metadata of a call."""
    found = _current.get()
    return (("traceparent", found),) if found else None


class Traces(Protocol):
    """What executing tells of itself."""

    def decided(self, orders: Sequence[Order], cycle: int) -> None:
        """These orders were taken."""

    def doing(self, order: Order) -> AbstractContextManager[None]:
        """Around carrying an order out."""

    def ended(self, order: Order, outcome: str, error: str) -> None:
        """An order has its outcome."""


class NoTraces:
    """Not recorded."""

    def decided(self, orders: Sequence[Order], cycle: int) -> None:
        """These orders were taken."""

    def doing(self, order: Order) -> AbstractContextManager[None]:
        """Around carrying an order out."""
        return _NOTHING

    def ended(self, order: Order, outcome: str, error: str) -> None:
        """An order has its outcome."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A machine that belongs to a trace."""

    origin: SpanRef
    """The decision that first chose it."""
    parent: SpanRef
    """The decision its present order comes from."""
    action: SpanRef
    begun: int
    ended: int = 0
    """When that order had its outcome; 0 before."""
    over: bool = False
    """The machine serves or is lost; only the outcome of its order is still to come."""


class ShardTraces:
    """Records the spans of one shard. `read_unix_ns` tells when the present cycle began."""

    def __init__(self, spans: Spans, clock: Clock, read_unix_ns: Callable[[], int]) -> None:
        self._spans, self._clock, self._read_unix_ns = spans, clock, read_unix_ns
        self._clusters: dict[str, SpanRef] = {}
        """The roll-up that last changed a cluster's rows."""
        self._machines: dict[str, _Known] = {}

    def rolled_up(self, cluster: str, timestamp: int, changes: RowChanges, began: int) -> None:
        """A roll-up was taken."""
        if not (changes.added or changes.changed):
            return
        origin = rollup_ref(cluster, timestamp)
        if not self._spans.keeps(origin.trace):
            self._clusters.pop(cluster, None)
            return
        self._clusters[cluster] = origin
        keys: Attributes = {
            "bigfleet.cluster": cluster,
            "bigfleet.rows.added": len(changes.added),
            "bigfleet.rows.changed": len(changes.changed),
        }
        ref, now = self._spans.child(origin), self._clock.now()
        self._spans.record(Span("ingest", ref, origin, began, now, keys, SpanKind.SERVER))

    def decided(self, orders: Sequence[Order], cycle: int) -> None:
        """These orders were taken."""
        now, decisions = self._clock.now(), dict[SpanRef, SpanRef]()
        for order in orders:
            if order.kind not in TRACED:
                continue
            known = self._machines.pop(order.machine, None)
            above = known.origin if known else self._clusters.get(order.cluster)
            if above is None:
                continue
            if above not in decisions:
                decisions[above] = self._spans.child(above)
                keys: Attributes = {"bigfleet.cycle": cycle, "bigfleet.cluster": order.cluster}
                decision = Span("decide", decisions[above], above, self._read_unix_ns(), now, keys)
                self._spans.record(decision)
            parent = decisions[above]
            origin = known.origin if known else parent
            action = self._spans.child(parent)
            self._machines[order.machine] = _Known(origin, parent, action, now)
        while len(self._machines) > MOST:
            del self._machines[next(iter(self._machines))]

    def doing(self, order: Order) -> AbstractContextManager[None]:
        """Around carrying an order out: calls made inside carry its span."""
        known = self._machines.get(order.machine) if order.kind in TRACED else None
        return _NOTHING if known is None else _inside(traceparent(known.action))

    def ended(self, order: Order, outcome: str, error: str) -> None:
        known = self._machines.get(order.machine) if order.kind in TRACED else None
        if known is None:
            return
        now = self._clock.now()
        keys: Attributes = {
            "bigfleet.machine": order.machine,
            "bigfleet.cluster": order.cluster,
            "bigfleet.provider": order.provider,
            "bigfleet.priority": order.priority,
            "bigfleet.outcome": outcome,
        }
        span = Span(
            order.kind.title, known.action, known.parent, known.begun, now, keys, error=error
        )
        self._spans.record(span)
        if known.over or error:
            del self._machines[order.machine]
        else:
            self._machines[order.machine] = replace(known, ended=now)

    def changed(self, before: Machine | None, after: Machine | None) -> None:
        """A machine changed, came or went."""
        one = after or before
        known = None if one is None else self._machines.get(one.id)
        if one is None or known is None:
            return
        moved = (None if before is None else before.state, None if after is None else after.state)
        if moved == (S.CREATING, S.IDLE):
            self._saw("machine created", one, known)
        elif moved == (S.CONFIGURING, S.CONFIGURED):
            self._saw("machine joined", one, known)
            self._let_go(one.id, known)
        elif moved[1] in _LOST:
            self._saw("machine lost", one, known, one.last_error or "it is gone")
            self._let_go(one.id, known)

    def _let_go(self, machine: str, known: _Known) -> None:
        if known.ended:
            del self._machines[machine]
        else:
            self._machines[machine] = replace(known, over=True)

    def _saw(self, name: str, machine: Machine, known: _Known, error: str = "") -> None:
        keys: Attributes = {"bigfleet.machine": machine.id, "bigfleet.provider": machine.provider}
        begun = known.ended or known.begun
        ref, now = self._spans.child(known.action), self._clock.now()
        self._spans.record(Span(name, ref, known.action, begun, now, keys, error=error))


@contextmanager
def _inside(text: str) -> Iterator[None]:
    token = _current.set(text)
    try:
        yield
    finally:
        _current.reset(token)
