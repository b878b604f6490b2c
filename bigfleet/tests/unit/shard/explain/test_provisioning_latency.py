"""Waits for the first machine of something new: which are measured, and which are none."""

from __future__ import annotations

from dataclasses import replace

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.explain.provisioning_latency import ProvisioningLatency
from clocks import HandClock
from executing_values import PROFILE, machine, order, stamp

S = MachineState
ROW = (PROFILE.fingerprint, "", "")
COMING = replace(machine("m", S.CONFIGURING), stamp=stamp())
THERE = replace(machine("m", S.CONFIGURED), stamp=stamp())


class Story:
    """One cluster and its waits."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.waits: list[float] = []
        self.asked = ProvisioningLatency(self.clock, self.waits.append)

    def rolls_up(self, cluster: str = "c-1", *, added: bool = True) -> None:
        changes = RowChanges(added=(ROW,)) if added else RowChanges(removed=(ROW,))
        self.asked.rolled_up(cluster, 0, changes, self.clock.now())

    def decides(self, *unmet: str, ordered: bool = False) -> None:
        orders = [order(ActionKind.BOOTSTRAP, "m")] if ordered else []
        asking = [(cluster, PROFILE.fingerprint) for cluster in unmet]
        self.asked.decided(orders, asking, self.clock.now() + 1)


def test_a_wait_lasts_from_the_first_roll_up_to_the_first_machine() -> None:
    story = Story()
    story.rolls_up()
    story.clock.advance(10.0)
    story.rolls_up()
    story.decides("c-1")
    story.decides(ordered=True)
    story.decides()
    story.clock.advance(5.0)
    story.asked.changed(COMING, THERE)
    story.asked.changed(COMING, THERE)
    assert story.waits == [15.0]
    assert not len(story.asked)


def test_what_is_served_by_what_is_there_waits_for_nothing() -> None:
    story = Story()
    story.rolls_up()
    story.decides()
    story.asked.changed(COMING, THERE)
    assert story.waits == []


def test_that_another_cluster_lacks_the_same_is_no_wait() -> None:
    story = Story()
    story.rolls_up("c-1")
    story.rolls_up("c-2")
    story.decides("c-2")
    assert len(story.asked) == 1
    story.clock.advance(3600.0)
    story.decides("c-2", ordered=True)
    story.asked.changed(COMING, THERE)
    assert story.waits == []


def test_a_cycle_that_read_its_demand_before_says_nothing_of_it() -> None:
    story = Story()
    story.rolls_up()
    story.asked.decided([], [], story.clock.now())
    assert len(story.asked) == 1


def test_who_asks_no_more_waits_no_more() -> None:
    story = Story()
    story.rolls_up()
    story.decides(ordered=True)
    story.rolls_up(added=False)
    story.asked.changed(COMING, THERE)
    assert story.waits == []


def test_a_machine_that_is_seen_for_the_first_time_or_goes_on_is_no_delivery() -> None:
    story = Story()
    story.rolls_up()
    story.asked.changed(None, THERE)
    story.asked.changed(THERE, THERE)
    story.asked.changed(THERE, None)
    story.asked.changed(THERE, replace(THERE, state=S.FAILED, last_error="x"))
    assert len(story.asked) == 1
