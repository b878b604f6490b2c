"""Hints at available capacity: what is counted, and when it is said again."""

import pytest

from bigfleet.decision.policy import SECOND
from bigfleet.model import LABEL_INSTANCE_TYPE, Machine, Need
from bigfleet.shard.explain.hints import Hint, Hints, pinned_types
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from living import Living
from worlds import NOW, A, B, S, label, machine, need

NONE, MEDIUM, HIGH = (
    pb.AvailableCapacityUpdate.CONFIDENCE_NONE,
    pb.AvailableCapacityUpdate.CONFIDENCE_MEDIUM,
    pb.AvailableCapacityUpdate.CONFIDENCE_HIGH,
)


class World:
    """A shard that is asked for hints cycle after cycle."""

    def __init__(self, most: int = 5000) -> None:
        self.hints = Hints(most=most)
        self.living = Living()
        self.connected = {A, B}
        self.machines: list[Machine] = []
        self.needs: list[Need] = []
        self.now = NOW

    def cycle(self, seconds: float = 10) -> list[Hint]:
        self.now += int(seconds * SECOND)
        plan = self.living.plan(self.machines, self.needs, self.now)
        return list(self.hints.updates(plan.fleet, plan.demand, self.connected, self.now))

    def said(self, seconds: float = 10) -> list[tuple[str, int, int, float]]:
        return [
            (h.cluster, u.available_count, u.confidence, u.cost_per_hour)
            for h in self.cycle(seconds)
            for u in [h.message.available_capacity]
        ]


@pytest.fixture
def world() -> World:
    return World()


def pinned(*types: str, cluster: str = A) -> Need:
    return need(cluster, where=[label(LABEL_INSTANCE_TYPE, "In", *types)])


def test_a_frame_names_the_profile_and_what_is_to_be_had(world: World) -> None:
    world.machines = [
        machine("m-1", cpu=4, price=2.0), machine("m-2", cpu=4, price=1.5),
        machine("m-3", S.SPECULATIVE, cpu=4, price=0.5), machine("m-4", cpu=8),
        machine("m-5", S.CONFIGURED, cpu=4), machine("m-6", cpu=4, excluded=True),
    ]  # fmt: skip
    asked = world.needs = [pinned("t4")]
    (hint,) = world.cycle()
    update = hint.message.available_capacity
    key = f"available:{asked[0].profile.fingerprint}"
    assert (hint.key, update.supersedes_key) == (key, key)
    assert update.requirements[0].key == LABEL_INSTANCE_TYPE
    assert (update.available_count, update.confidence) == (3, HIGH)
    assert update.cost_per_hour == 1.5
    assert not update.HasField("resources")


def test_machines_in_back_off_are_to_be_had_and_others_kept_out_are_not(world: World) -> None:
    world.machines = [
        machine("m-1", cpu=4, backing_off=True), machine("m-2", cpu=4, excluded=True),
        machine("m-3", cpu=4, reserved=True), machine("m-4", cpu=4),
    ]  # fmt: skip
    world.needs = [pinned("t4")]
    (hint,) = world.cycle()
    assert hint.message.available_capacity.available_count == 2


def test_confidence_is_high_for_idle_medium_for_speculative_else_none(world: World) -> None:
    world.needs = [pinned("t4"), pinned("t8"), pinned("t16")]
    world.machines = [machine("m-1", cpu=4, price=3), machine("m-2", S.SPECULATIVE, cpu=8)]
    assert sorted(world.said()) == [(A, 0, NONE, 0.0), (A, 1, MEDIUM, 0.0), (A, 1, HIGH, 3.0)]


def test_without_a_pin_every_free_machine_counts_and_no_cost_is_said(world: World) -> None:
    world.needs = [need(where=[label("pool", "In", "nowhere")])]
    world.machines = [machine("m-1", cpu=4), machine("m-2", S.SPECULATIVE, cpu=8)]
    assert world.said() == [(A, 2, HIGH, 0.0)]


def test_what_did_not_change_is_not_said_again(world: World) -> None:
    world.needs = [pinned("t4"), pinned("t8")]
    world.machines = [machine("m-1", cpu=4)]
    assert len(world.said()) == 2
    assert world.said() == []
    world.machines = [machine("m-1", cpu=4), machine("m-2", cpu=4)]
    assert world.said() == [(A, 2, HIGH, 1.0)]


def test_a_change_within_five_seconds_waits(world: World) -> None:
    world.needs = [pinned("t4")]
    world.machines = [machine("m-1")]
    assert world.said() == [(A, 1, HIGH, 1.0)]
    world.machines = []
    assert world.said(4.9) == []
    assert world.said(0.1) == [(A, 0, NONE, 0.0)]


def test_a_new_session_is_told_everything_and_the_others_nothing(world: World) -> None:
    world.needs = [pinned("t4"), pinned("t4", cluster=B)]
    assert len(world.said()) == 2
    world.hints.forget(A)
    assert world.said(0) == [(A, 0, NONE, 0.0)]
    world.hints.forget("unknown")


def test_a_cluster_without_a_session_is_told_nothing(world: World) -> None:
    world.needs = [pinned("t4"), pinned("t4", cluster=B)]
    world.connected = {B}
    assert [cluster for cluster, *_ in world.said()] == [B]
    world.connected = {A, B, "new"}
    assert [cluster for cluster, *_ in world.said()] == [A]


def test_memory_survives_rows_that_come_and_go(world: World) -> None:
    world.needs = [pinned("t4"), pinned("t8")]
    world.said()
    world.needs = [pinned("t8"), pinned("t2"), pinned("t4")]
    assert len(world.said()) == 1
    world.needs = [pinned("t8")]
    assert world.said() == []
    world.needs = [pinned("t8"), pinned("t4")]
    assert len(world.said()) == 1


def test_equal_profiles_of_one_cluster_are_one_hint(world: World) -> None:
    world.needs = [need(group="a", cpu=1), need(group="b", cpu=2)]
    assert len(world.said()) == 1


def test_what_exceeds_a_cycles_limit_comes_with_the_next() -> None:
    world = World(most=2)
    world.needs = [pinned(f"t{n}") for n in range(5)]
    assert [len(world.said(0.2)) for _ in range(4)] == [2, 2, 1, 0]


def test_two_pins_on_the_type_mean_both() -> None:
    both = need(
        where=[label(LABEL_INSTANCE_TYPE, "In", "a", "b"), label(LABEL_INSTANCE_TYPE, "In", "b")]
    )
    assert pinned_types(both.profile) == ("b",)
    assert pinned_types(need(where=[label(LABEL_INSTANCE_TYPE, "NotIn", "a")]).profile) is None


def test_no_demand_is_no_hint(world: World) -> None:
    assert world.said() == []
