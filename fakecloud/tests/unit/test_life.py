"""Life cycles: tables that make sense, and objects that follow them."""

import random

import pytest

from bigfleet_fakecloud import Conflict, Life, NotFound, Resource, ScriptError, Then, Verb
from bigfleet_fakecloud import VirtualClock as Clock
from bigfleet_fakecloud.behaviour.delays import HORIZON, Delays
from bigfleet_fakecloud.examples.tiny import HOST
from bigfleet_fakecloud.state.collection import Collection
from bigfleet_fakecloud.state.timeline import Timeline


class World:
    def __init__(self, **delays: object) -> None:
        self.clock = Clock(0.0)
        self.delays = Delays()
        self.delays.turn({"transition": 2.0, **delays})
        self.hosts = Collection("host", HOST, Timeline(self.clock), self.delays, random.Random(1))
        self.hosts.create("h-1", {"type": "small"}, {"who": "us"})

    def state(self) -> str | None:
        found = self.hosts.truth("h-1")
        return found.state if found else None


def test_an_object_moves_by_itself_when_its_time_has_come() -> None:
    world = World()
    world.clock.advance(1.9)
    assert world.state() == "starting"
    world.clock.advance(0.1)
    assert world.state() == "running"


def test_a_late_reader_finds_the_moments_at_which_things_happened() -> None:
    world = World()
    world.clock.advance(3600)
    found = world.hosts.truth("h-1")
    assert found is not None
    assert found.changed == 2.0


def test_a_verb_is_refused_in_the_wrong_state_and_harmless_where_it_is_done() -> None:
    world = World()
    with pytest.raises(Conflict, match="stop is not possible for host h-1 in starting"):
        world.hosts.act("h-1", "stop")
    world.clock.advance(2)
    assert world.hosts.act("h-1", "start").state == "running"
    assert world.hosts.act("h-1", "stop").state == "stopping"


def test_a_step_is_forgotten_when_the_object_went_another_way() -> None:
    world = World()
    world.clock.advance(1)
    world.hosts.act("h-1", "delete")
    world.clock.advance(1)
    assert world.state() == "ending"
    world.clock.advance(1)
    assert world.state() == "ended"


def test_a_state_entered_again_waits_its_whole_time_again() -> None:
    world = World()
    world.clock.advance(1)
    world.hosts.happen("h-1", "stop")
    world.hosts.act("h-1", "start")
    world.clock.advance(1)
    assert world.state() == "starting"
    world.clock.advance(1)
    assert world.state() == "running"


def test_an_ended_object_can_be_read_for_a_while_and_is_then_gone() -> None:
    world = World()
    world.hosts.happen("h-1", "preempt")
    world.clock.advance(59)
    assert world.hosts.get("h-1").state == "ended"
    world.clock.advance(1)
    with pytest.raises(NotFound, match="h-1"):
        world.hosts.get("h-1")


def test_reads_lag_behind_writes_by_the_time_that_was_set() -> None:
    world = World(lag_get=1.0, lag_list=3.0)
    with pytest.raises(NotFound):
        world.hosts.get("h-1")
    world.clock.advance(1)
    assert world.hosts.get("h-1").state == "starting"
    assert world.hosts.list() == []
    world.clock.advance(2)
    assert [host.state for host in world.hosts.list()] == ["starting"]
    assert world.hosts.get("h-1").state == "running"


def test_a_removed_object_is_still_listed_until_the_lag_is_over() -> None:
    world = World(lag_list=3.0)
    world.clock.advance(10)
    world.hosts.vanish("h-1")
    assert [host.ref for host in world.hosts.list()] == ["h-1"]
    world.clock.advance(3)
    assert world.hosts.list() == []


def test_a_removed_id_is_never_given_again() -> None:
    world = World()
    world.hosts.vanish("h-1")
    world.clock.advance(2 * HORIZON)
    assert world.hosts.everything() == []
    with pytest.raises(ScriptError, match="never reused"):
        world.hosts.create("h-1", {})


def test_listeners_see_what_was_and_what_is() -> None:
    world = World()
    seen: list[tuple[str | None, str | None]] = []

    def note(before: Resource | None, after: Resource | None) -> None:
        seen.append((before.state if before else None, after.state if after else None))

    world.hosts.listen(note)
    world.clock.advance(2)
    world.hosts.edit("h-1", tags={})
    world.hosts.vanish("h-1")
    assert seen == [("starting", "running"), ("running", "running"), ("running", None)]


def test_an_unknown_verb_or_event_is_the_authors_mistake() -> None:
    world = World()
    with pytest.raises(ScriptError, match="no verb 'fly'"):
        world.hosts.act("h-1", "fly")
    with pytest.raises(ScriptError, match="preempt, stop"):
        world.hosts.happen("h-1", "burn")


def test_a_table_that_names_a_state_nothing_leads_to_is_refused() -> None:
    with pytest.raises(ScriptError, match="nothing leads to runing"):
        Life("new", verbs={"stop": Verb.move("runing", to="stopped")})


def test_steps_that_never_end_are_refused() -> None:
    with pytest.raises(ScriptError, match="never end"):
        Life("a", steps={"a": Then("b"), "b": Then("a")})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"speed": 1}, "no delay 'speed'"),
        ({"latency": -1}, "from 0 on"),
        ({"latency": "1"}, "from 0 on"),
        ({"lag_list": HORIZON + 1}, "at most 600"),
        ({"pace": float("nan")}, "from 0 on"),
    ],
)
def test_a_bad_knob_changes_nothing(values: dict[str, object], reason: str) -> None:
    delays = Delays()
    with pytest.raises(ScriptError, match=reason):
        delays.turn({"latency": 5, **values})
    assert delays == Delays()
