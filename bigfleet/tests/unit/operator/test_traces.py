"""What an operator records of a trace: its beginning and its end."""

from __future__ import annotations

from bigfleet.observe.tracing import SpanRef, rollup_ref, traceparent
from bigfleet.operator.demand.rollup import Built
from bigfleet.operator.traces import MOST, OperatorTraces
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from clocks import HandClock
from kept_spans import KeptSpans


class World:
    """An operator's traces."""

    def __init__(self) -> None:
        self.spans, self.clock = KeptSpans(), HandClock()
        self.traces = OperatorTraces(self.spans, self.clock, "c-1")

    def roll_up(self, timestamp: int) -> None:
        self.traces.rolled_up(Built(timestamp, b"frame", 2))

    async def bootstrap(self, request_id: str) -> None:
        request = pb.BootstrapRequest(request_id=request_id)
        request.machine.machine_id = "m-1"
        await self.traces.bootstrap(request, nothing())


async def nothing() -> None:
    pass


def test_only_roll_ups_that_bring_news_begin_a_trace() -> None:
    world = World()
    world.roll_up(1)
    world.roll_up(2)
    world.traces.demand_changed()
    world.roll_up(3)
    assert world.spans.all == []
    world.traces.taken(3)
    assert [one.ref for one in world.spans.all] == [rollup_ref("c-1", 1), rollup_ref("c-1", 3)]
    assert all(one.parent is None for one in world.spans.all)


def test_a_shard_that_takes_no_rollup_does_not_fill_the_memory() -> None:
    world = World()
    for timestamp in range(MOST + 2):
        world.traces.demand_changed()
        world.roll_up(timestamp)
    world.traces.taken(MOST + 2)
    assert len(world.spans.all) == MOST


async def test_a_node_ends_the_trace_that_its_data_was_asked_in() -> None:
    world, asked = World(), SpanRef(5, 6)
    await world.bootstrap(traceparent(asked) + "0123")
    assert world.spans.one("bootstrap").parent == asked
    world.traces.node_ready("m-1", "node-1")
    world.traces.node_ready("m-1", "node-1")
    ready = world.spans.one("node Ready")
    assert ready.parent == world.spans.one("bootstrap").ref
    assert ready.attributes["k8s.node.name"] == "node-1"


async def test_a_request_of_no_trace_is_answered_without_a_span() -> None:
    world = World()
    await world.bootstrap("0123456789abcdef0123456789abcdef")
    world.traces.node_ready("m-1", "node-1")
    assert world.spans.all == []


async def test_without_spans_everything_is_as_before() -> None:
    traces = OperatorTraces(None, HandClock(), "c-1")
    traces.rolled_up(Built(1, b"", 0))
    traces.taken(1)
    await traces.bootstrap(pb.BootstrapRequest(request_id="x"), nothing())
    traces.node_ready("m-1", "node-1")
