"""Verdicts for clusters: what changed since they were last told."""

from dataclasses import replace

import pytest

from bigfleet.decision import Reason
from bigfleet.model import Machine, Need
from bigfleet.model.reasons import WHY as WORDS
from bigfleet.shard.explain.failing_creates import ShownPlan
from bigfleet.shard.explain.verdicts import VerdictUpdates
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2
from living import Living
from worlds import NOW, RACK, A, B, label, machine, need


class World:
    """A shard that tells verdicts cycle after cycle."""

    def __init__(self, most: int = 5000) -> None:
        self.verdicts = VerdictUpdates(most)
        self.living = Living()
        self.listening = {A, B}

    def cycle(self, machines: list[Machine], needs: list[Need]) -> dict[str, list[pb.NeedVerdict]]:
        plan = self.living.plan(machines, needs, NOW)
        told = list(self.verdicts.changes(ShownPlan.as_decided(plan), self.listening))
        assert len({t.cluster for t in told}) == len(told)
        return {t.cluster: list(t.message.need_verdicts.verdicts) for t in told}


@pytest.fixture
def world() -> World:
    return World()


def test_a_cluster_is_told_all_of_its_verdicts_once(world: World) -> None:
    met, unmet = need(cpu=4), replace(need(B, cpu=8, unit=4, priority=1), size_class="s-1")
    told = world.cycle([machine("m-1")], [met, unmet])
    (mine,), (other,) = told[A], told[B]
    assert (mine.satisfied, mine.reason, mine.message) == (True, 0, "")
    assert mine.profile_fingerprint == met.profile.fingerprint
    assert not other.satisfied
    assert other.size_class == "s-1"
    assert other.reason == shardread_pb2.UNMET_REASON_PRIORITY_STARVED
    assert other.message == f"{WORDS[Reason.PRIORITY_STARVED]}; missing cpu 8"
    assert world.cycle([machine("m-1")], [met, unmet]) == {}


def test_a_changed_verdict_or_reason_is_told(world: World) -> None:
    asked = need(cpu=8, unit=4, where=[label("pool", "In", "x")])
    (first,) = world.cycle([], [asked])[A]
    assert first.reason == shardread_pb2.UNMET_REASON_NO_MATCHING_SUPPLY
    machines = [machine(f"m-{n}", labels={"pool": "x"}) for n in range(2)]
    (second,) = world.cycle(machines[:1], [asked])[A]
    assert second.reason == shardread_pb2.UNMET_REASON_PRIORITY_STARVED
    (third,) = world.cycle(machines, [asked])[A]
    assert third.satisfied


def test_every_member_of_a_folded_row_is_told(world: World) -> None:
    gangs = [need(cpu=4, unit=2, same=RACK, group=f"g-{n}") for n in range(3)]
    told = world.cycle([machine("m-1", rack="r")], gangs)
    assert sorted(v.group for v in told[A]) == ["g-0", "g-1", "g-2"]


def test_a_new_session_is_told_everything_and_the_others_nothing(world: World) -> None:
    needs = [need(A), need(B)]
    world.verdicts.forget(A)
    world.cycle([], needs)
    world.verdicts.forget(A)
    assert set(world.cycle([], needs)) == {A}


def test_a_cluster_that_cannot_read_verdicts_is_told_none(world: World) -> None:
    world.listening = {B, "unknown"}
    assert set(world.cycle([], [need(A), need(B)])) == {B}
    world.listening = {A, B}
    assert set(world.cycle([], [need(A), need(B)])) == {A}


def test_a_need_that_comes_back_is_told_again(world: World) -> None:
    world.cycle([], [need(A)])
    assert world.cycle([], []) == {}
    assert set(world.cycle([], [need(A)])) == {A}


def test_what_exceeds_a_cycles_limit_comes_with_the_next() -> None:
    world = World(most=3)
    needs = [need(A if n % 2 else B, cpu=1, priority=n) for n in range(5)]
    sizes = [sum(map(len, world.cycle([], needs).values())) for _ in range(3)]
    assert sizes == [3, 2, 0]


def test_every_reason_has_words() -> None:
    assert set(WORDS) == set(Reason)
