"""What a shard records of a trace, and that it forgets machines that no longer belong to one."""

from __future__ import annotations

import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from bigfleet.observe.tracing import rollup_ref, traceparent
from bigfleet.shard.act.traces import NoTraces, ShardTraces, carried, headers
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.machines.orders import Order
from clocks import HandClock
from executing_values import machine
from kept_spans import KeptSpans

S = MachineState
NEWS = RowChanges(added=(("fingerprint", ""),))  # type: ignore[arg-type]


class World:
    """A shard's traces with a clock set by hand."""

    def __init__(self, *, keep: bool = True) -> None:
        self.clock = HandClock()
        self.spans = KeptSpans(keep=keep)
        self.traces = ShardTraces(self.spans, self.clock, lambda: self.clock.unix - 5)

    def roll_up(self, timestamp: int = 7) -> None:
        self.traces.rolled_up("c-1", timestamp, NEWS, self.clock.unix - 1)

    def order(self, kind: ActionKind, outcome: str = "success", error: str = "") -> None:
        order = Order(kind, "m-1", "p", "c-1")
        self.traces.decided([order], 3)
        self.clock.advance(1)
        self.traces.ended(order, outcome, error)

    def moved(self, before: MachineState, after: MachineState | None) -> None:
        self.clock.advance(1)
        seen = None if after is None else machine("m-1", after)
        self.traces.changed(machine("m-1", before), seen)


def test_a_machine_stays_in_the_trace_of_the_roll_up_it_was_made_for() -> None:
    world = World()
    world.roll_up()
    world.order(ActionKind.PROVISION)
    world.moved(S.CREATING, S.IDLE)
    world.roll_up(timestamp=8)
    world.order(ActionKind.BOOTSTRAP)
    world.moved(S.CONFIGURING, S.CONFIGURED)
    about = [one for one in world.spans.all if one.name != "ingest"]
    assert [one.name for one in about] == [
        "decide", "Provision", "machine created", "decide", "Bootstrap", "machine joined",
    ]  # fmt: skip
    assert {one.ref.trace for one in about} == {rollup_ref("c-1", 7).trace}
    assert about[0].parent == rollup_ref("c-1", 7)
    assert about[3].parent == about[0].ref
    assert about[5].parent == about[4].ref


def test_a_roll_up_that_changes_nothing_begins_no_trace() -> None:
    world = World()
    world.traces.rolled_up("c-1", 7, RowChanges(), 0)
    world.order(ActionKind.BOOTSTRAP)
    assert world.spans.all == []


def test_what_is_not_kept_costs_no_span() -> None:
    world = World(keep=False)
    world.roll_up()
    world.order(ActionKind.PROVISION)
    world.moved(S.CREATING, S.IDLE)
    assert world.spans.all == []


def test_calls_made_for_an_order_carry_its_span_and_no_others() -> None:
    world = World()
    world.roll_up()
    order = Order(ActionKind.PROVISION, "m-1", "p", "c-1")
    world.traces.decided([order], 3)
    with world.traces.doing(order):
        inside = carried()
        assert headers() == (("traceparent", inside),)
    with world.traces.doing(Order(ActionKind.DELETE, "m-1", "p", "c-1")):
        assert (carried(), headers()) == ("", None)
    world.traces.ended(order, "success", "")
    assert inside == traceparent(world.spans.one("Provision").ref)


@pytest.mark.parametrize("lost", [S.SPECULATIVE, S.FAILED, S.DELETING, None])
def test_a_machine_that_is_lost_ends_its_part_of_the_trace(lost: MachineState | None) -> None:
    world = World()
    world.roll_up()
    world.order(ActionKind.PROVISION)
    world.moved(S.CREATING, lost)
    assert world.spans.one("machine lost").error
    world.moved(S.CREATING, S.IDLE)
    assert world.spans.names()[-1] == "machine lost"


def test_an_order_that_failed_says_why_and_the_machine_is_free_again() -> None:
    world = World()
    world.roll_up()
    world.order(ActionKind.PROVISION, "provider_error", "out of stock")
    assert world.spans.one("Provision").error == "out of stock"
    world.moved(S.CREATING, S.IDLE)
    assert "machine created" not in world.spans.names()


def test_a_provider_that_is_done_before_it_answers_leaves_both_spans() -> None:
    world = World()
    world.roll_up()
    order = Order(ActionKind.BOOTSTRAP, "m-1", "p", "c-1")
    world.traces.decided([order], 3)
    world.moved(S.CONFIGURING, S.CONFIGURED)
    world.traces.ended(order, "success", "")
    assert world.spans.names()[-2:] == ["machine joined", "Bootstrap"]


def test_without_traces_nothing_is_carried() -> None:
    order = Order(ActionKind.PROVISION, "m-1", "p", "c-1")
    none = NoTraces()
    none.decided([order], 1)
    with none.doing(order):
        assert headers() is None
    none.ended(order, "success", "")
