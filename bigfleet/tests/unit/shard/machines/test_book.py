"""The book: one action per machine, and answers that cross an action do no harm."""

from dataclasses import replace

import pytest

from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    IllegalMoveError,
    Machine,
    MachineState,
    PenaltyBucket,
    Stamp,
)
from bigfleet.model.columns import Symbols
from bigfleet.shard.machines.book import Book, RecordEffect, UnknownMachineError
from clocks import HandClock

S = MachineState
STAMP = Stamp("c-1", "shape", "", "print", 100, PenaltyBucket.ZERO, PenaltyBucket.ZERO, 7)


def machine(state: MachineState = S.IDLE, name: str = "m-1", **fields: object) -> Machine:
    host = None if state in (S.SPECULATIVE, S.CREATING) else HostRef("cloud", f"h-{name}")
    bound = state in (S.CONFIGURING, S.CONFIGURED, S.DRAINING)
    made = Machine(
        name, state, host, "cloud", "region", "c-1" if bound else "", "small", "z-a",
        CapacityType.ON_DEMAND, {"pool": "p"}, {"cpu": 4000}, price_per_hour=0.5,
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


class World:
    def __init__(self, *machines: Machine) -> None:
        self.clock = HandClock()
        self.book = Book(Symbols(), self.clock)
        for each in machines:
            self.book.take(each)
        self.changes: list[tuple[MachineState | None, MachineState | None]] = []
        self.book.on_change.append(self._changed)

    def _changed(self, before: Machine | None, after: Machine | None) -> None:
        states = [None if each is None else each.state for each in (before, after)]
        self.changes.append((states[0], states[1]))

    def known(self, name: str = "m-1") -> Machine:
        found = self.book.get(name)
        assert found is not None
        return found


def test_a_record_seen_twice_changes_nothing_and_no_subscriber_is_told() -> None:
    world = World(machine())
    assert world.book.take(machine()).seen is RecordEffect.SAME
    assert world.changes == []


def test_what_is_listed_during_an_action_is_put_aside() -> None:
    world = World(machine())
    assert world.book.mark_busy("m-1")
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    assert world.book.take(machine(S.IDLE)).seen is RecordEffect.ASIDE
    assert world.known().state is S.CONFIGURING


def test_the_end_that_was_listed_during_the_action_is_taken_when_it_ends() -> None:
    world = World(machine())
    world.book.mark_busy("m-1")
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    world.book.take(machine(S.CONFIGURED))
    world.book.take(machine(S.CONFIGURING), own=True)
    freed = world.book.free("m-1")
    assert freed is not None
    assert freed.delivered
    assert world.known().state is S.CONFIGURED
    assert world.known().stamp == STAMP


def test_an_old_record_put_aside_is_forgotten_when_the_action_ends() -> None:
    world = World(machine())
    world.book.mark_busy("m-1")
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    world.book.take(machine(S.IDLE))
    assert world.book.free("m-1") is None
    assert world.known().state is S.CONFIGURING


def test_a_list_asked_for_before_an_action_ended_cannot_undo_it() -> None:
    world = World(machine())
    sent_monotonic_s = world.clock.monotonic()
    world.clock.advance(1)
    world.book.mark_busy("m-1")
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    world.book.free("m-1")
    assert world.book.take(machine(S.IDLE), sent_monotonic_s).seen is RecordEffect.STALE
    assert world.book.take(machine(S.CONFIGURED), sent_monotonic_s).delivered


def test_a_list_asked_for_later_is_believed() -> None:
    world = World(machine())
    world.book.mark_busy("m-1")
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    world.book.free("m-1")
    world.clock.advance(1)
    taken = world.book.take(machine(S.IDLE), world.clock.monotonic())
    assert taken.seen is RecordEffect.CHANGED
    assert world.known().state is S.IDLE


def test_only_one_action_holds_a_machine() -> None:
    world = World(machine())
    assert world.book.mark_busy("m-1")
    assert not world.book.mark_busy("m-1")
    world.book.free("m-1")
    assert world.book.mark_busy("m-1")


def test_a_drained_machine_is_idle_for_its_preemptor() -> None:
    world = World(machine(S.CONFIGURED))
    world.book.leave("m-1", STAMP)
    world.book.start("m-1", S.DRAINING)
    world.book.take(machine(S.IDLE))
    known = world.known()
    assert (known.state, known.stamp, known.leaving, known.cluster) == (S.IDLE, STAMP, None, "")
    assert known.idle_since_ns == world.clock.now()


@pytest.mark.parametrize(
    ("frm", "to", "back"),
    [
        (S.SPECULATIVE, S.CREATING, S.SPECULATIVE),
        (S.IDLE, S.CONFIGURING, S.IDLE),
        (S.IDLE, S.DELETING, S.IDLE),
        (S.CONFIGURED, S.DRAINING, S.CONFIGURED),
    ],
)
def test_what_did_not_happen_is_taken_back(
    frm: MachineState, to: MachineState, back: MachineState
) -> None:
    world = World(machine(frm))
    world.book.start("m-1", to, "c-1" if to is S.CONFIGURING else "")
    reverted = world.book.revert("m-1")
    assert reverted is not None
    assert (reverted.state, reverted.leaving) == (back, None)
    assert bool(reverted.cluster) == (back is S.CONFIGURED)
    assert world.changes == [(frm, to), (to, back)]


def test_a_move_the_lifecycle_does_not_know_is_refused() -> None:
    world = World(machine(S.SPECULATIVE))
    with pytest.raises(IllegalMoveError, match="Speculative to Draining"):
        world.book.start("m-1", S.DRAINING)
    with pytest.raises(UnknownMachineError, match="m-9"):
        world.book.start("m-9", S.CREATING)


def test_a_bound_machine_that_vanishes_is_lost_and_an_idle_one_is_not() -> None:
    world = World(machine(S.CONFIGURED), machine(S.IDLE, "m-2"))
    assert world.book.vanish("m-1").lost
    assert not world.book.vanish("m-2").lost
    assert len(world.book) == 0
    assert world.book.vanish("m-3").seen is RecordEffect.SAME


def test_transitions_are_timed_from_when_they_began() -> None:
    world = World(machine())
    world.book.start("m-1", S.CONFIGURING, "c-1", STAMP)
    assert world.book.moving_since() == {"m-1": (S.CONFIGURING, world.clock.now())}
    world.book.take(machine(S.CONFIGURED))
    assert world.book.moving_since() == {}


def test_machines_bound_to_a_cluster_and_stamped_for_it_belong_to_its_replay() -> None:
    world = World(machine(S.CONFIGURED), machine(S.IDLE, "m-2"), machine(S.IDLE, "m-3"))
    world.book.stamp("m-2", STAMP)
    assert world.book.bound("c-1") == ["m-1", "m-2"]
    assert world.book.bound("elsewhere") == []


def test_machines_are_found_by_their_provider() -> None:
    world = World(machine(), machine(name="m-2", provider="other"))
    assert world.book.ids_of_provider("cloud") == ["m-1"]
    assert world.book.ids_of_provider("unknown") == []


def test_stamps_without_a_shape_get_it_from_the_demand() -> None:
    world = World(machine(S.CONFIGURED, stamp=replace(STAMP, shape="")))
    assert world.book.complete_stamps({("c-1", "print"): "shape"}) == 1
    assert world.known().stamp == STAMP
    assert world.book.complete_stamps({("c-1", "print"): "shape"}) == 0


def test_a_machine_in_its_grace_stays_configured_and_may_stay_after_all() -> None:
    world = World(machine(S.CONFIGURED))
    left = world.book.leave("m-1", None)
    assert (left.state, left.leaving) == (S.CONFIGURED, Departure(None, world.clock.now()))
    assert world.book.stay("m-1").leaving is None


def test_a_record_that_brings_a_new_name_waits_while_a_decision_is_made() -> None:
    world = World(machine())
    world.book.deciding(True)
    assert world.book.take(machine(S.CONFIGURED, cluster="unheard-of")).seen is RecordEffect.ASIDE
    assert world.book.take(machine(S.CREATING)).seen is RecordEffect.CHANGED
    assert world.book.symbols.clusters.find("unheard-of") == -1
    world.book.deciding(False)
    assert world.known().cluster == "unheard-of"
