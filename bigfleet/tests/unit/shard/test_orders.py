"""Orders: how a machine looks to the next cycle once something was ordered for it."""

from __future__ import annotations

from bigfleet.decision import ActionKind
from bigfleet.model import HostRef, Leaving, Machine, MachineState, PenaltyBucket, Stamp
from bigfleet.shard.orders import Order, begun

K, S = ActionKind, MachineState
NONE = PenaltyBucket.UNSPECIFIED
LOW = Stamp("c1", "shape", "", "low", 0, NONE, NONE, 1)
HIGH = Stamp("c1", "shape", "", "high", 1000, NONE, NONE, 2)
WAITING = Stamp("c2", "other", "", "waiting", 100, NONE, NONE, 3)
LEAVING = Machine(
    "m1", S.CONFIGURED, HostRef("p1", "h1"), "p1", cluster="c1", stamp=LOW, leaving=Leaving(WAITING)
)


def test_a_machine_that_is_kept_serves_the_need_that_keeps_it() -> None:
    kept = begun(LEAVING, Order(K.KEEP, "m1", "p1", "c1", stamp=HIGH))
    assert kept.leaving is None
    assert kept.stamp == HIGH


def test_a_machine_that_its_own_need_keeps_carries_the_stamp_it_had() -> None:
    kept = begun(LEAVING, Order(K.KEEP, "m1", "p1", "c1"))
    assert kept.leaving is None
    assert kept.stamp == LOW
