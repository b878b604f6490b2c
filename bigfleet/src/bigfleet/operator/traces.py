"""What an operator adds to a trace: the roll-up with which it begins, and the node with which it
ends.

    roll-up     from reading the requests until the shard has taken them; only where demand changed
    bootstrap   the data with which a machine becomes a node, below the shard's Bootstrap
    node Ready  from that data until the node is Ready in the cluster

Which machine belongs to which trace is told by the request for its bootstrap data. Without spans
nothing is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

from bigfleet.observe.process import Clock
from bigfleet.observe.tracing import (
    Attributes,
    Span,
    SpanKind,
    SpanRef,
    Spans,
    parse_traceparent,
    rollup_ref,
)
from bigfleet.operator.demand.rollup import Built
from bigfleet_api.v1alpha1 import shard_pb2 as pb

MOST: Final = 10_000
"""Machines and roll-ups that are waited for; the oldest is given up."""
K = TypeVar("K")
V = TypeVar("V")


class OperatorTraces:
    """Records the spans of one operator; without `spans`, none."""

    def __init__(self, spans: Spans | None, clock: Clock, cluster: str) -> None:
        self._spans, self._clock, self._cluster = spans, clock, cluster
        self._news = True
        self._sent: dict[int, Attributes] = {}
        """Roll-ups the shard has not taken: what is told of each."""
        self._awaited: dict[str, tuple[SpanRef, int]] = {}
        """Machines that got their data: below which span, and when."""

    def demand_changed(self) -> None:
        """The next roll-up brings something new, or goes to a shard that may know nothing."""
        self._news = True

    def rolled_up(self, built: Built) -> None:
        """A roll-up was handed over."""
        if self._spans is None or not self._news:
            return
        self._news = False
        if self._spans.keeps(rollup_ref(self._cluster, built.timestamp).trace):
            self._sent[built.timestamp] = {
                "bigfleet.cluster": self._cluster,
                "bigfleet.rows": built.rows,
                "bigfleet.bytes": len(built.frame),
            }
            _give_up_oldest(self._sent)

    def taken(self, timestamp: int) -> None:
        """The shard has taken the roll-up of this time, and whatever came before it."""
        if self._spans is None:
            return
        for sent in [one for one in self._sent if one <= timestamp]:
            keys, ref = self._sent.pop(sent), rollup_ref(self._cluster, sent)
            now = self._clock.now()
            self._spans.record(Span("roll-up", ref, None, sent, now, keys, SpanKind.CLIENT))

    async def bootstrap(self, request: pb.BootstrapRequest, answering: Awaitable[None]) -> None:
        """Around answering a request for bootstrap data."""
        parent = parse_traceparent(request.request_id) if self._spans is not None else None
        if self._spans is None or parent is None:
            await answering
            return
        began, ref = self._clock.now(), self._spans.child(parent)
        machine = request.machine.machine_id
        try:
            await answering
        finally:
            now = self._clock.now()
            keys = {"bigfleet.cluster": self._cluster, "bigfleet.machine": machine}
            span = Span("bootstrap", ref, parent, began, now, keys, SpanKind.SERVER)
            self._spans.record(span)
            self._awaited[machine] = (ref, now)
            _give_up_oldest(self._awaited)

    def node_ready(self, machine: str, node: str) -> None:
        """A machine's node is Ready, perhaps since long ago."""
        awaited = self._awaited.pop(machine, None)
        if self._spans is None or awaited is None:
            return
        parent, since = awaited
        keys = {
            "bigfleet.cluster": self._cluster,
            "bigfleet.machine": machine,
            "k8s.node.name": node,
        }
        ref, now = self._spans.child(parent), self._clock.now()
        self._spans.record(Span("node Ready", ref, parent, since, now, keys))


def _give_up_oldest(waiting: dict[K, V]) -> None:
    while len(waiting) > MOST:
        del waiting[next(iter(waiting))]
