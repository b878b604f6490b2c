"""Reclaims at unchanged demand are counted; those that something outside forced are not."""

from dataclasses import replace

import numpy as np

from bigfleet.decision import Carry, Engine, Plan, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import (
    CapacityType,
    HostRef,
    Machine,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Stamp,
)
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.shard.explain.reclaim_audit import UnforcedReclaims

SECOND = 1_000_000_000
NEED = Need("c-1", Profile.of([]), {"cpu": 8000}, {"cpu": 4000})


class World:
    """Two machines for one need of two units; cycles ten seconds apart."""

    def __init__(self) -> None:
        self.symbols = Symbols()
        self.inventory = Inventory(self.symbols)
        self.inventory.load(
            Machine(
                f"m-{i}", MachineState.CONFIGURED, HostRef("p", f"h-{i}"), "p", "", "c-1", "t", "z",
                CapacityType.ON_DEMAND, resources={"cpu": 4000}, stamp=Stamp.for_need(NEED, i + 1),
            )
            for i in range(2)
        )  # fmt: skip
        self.forced = UnforcedReclaims()
        self.carry = Carry()
        self.now = 1_000 * SECOND

    def cycle(self, *needs: Need) -> int:
        """A cycle at this demand; how many reclaims nothing forced."""
        demand = Demand.of(needs, {"c-1": ClusterFacts()}, self.symbols)
        plan: Plan = Engine().decide(
            self.inventory.snapshot(), demand, Policy(), self.carry, self.now
        )
        self.carry = plan.carry
        counted = self.forced.unforced(plan, Policy(), self.now)
        self.now += 10 * SECOND
        return counted


def test_a_reclaim_after_demand_shrank_is_forced() -> None:
    world = World()
    assert world.cycle(NEED) == 0
    world.forced.asked_for_less("c-1", world.now - SECOND)
    assert [world.cycle(replace(NEED, aggregate={"cpu": 4000})) for _ in range(5)] == [0] * 5


def test_draining_what_its_provider_takes_away_is_forced() -> None:
    world = World()
    world.cycle(NEED)
    rows = np.array([world.inventory.row("m-0"), world.inventory.row("m-1")])
    world.inventory.set_ending(rows, np.array([world.now + 90 * SECOND] * 2))
    assert [world.cycle(NEED) for _ in range(5)] == [0] * 5


def test_a_reclaim_that_nothing_explains_is_counted() -> None:
    world = World()
    world.forced.asked_for_less("c-1", world.now - SECOND)
    world.cycle(NEED)
    counted = [world.cycle(replace(NEED, aggregate={"cpu": 4000})) for _ in range(5)]
    assert sum(counted) > 0


def test_supply_that_came_back_explains_the_reclaim_of_its_replacement() -> None:
    world = World()
    world.cycle(NEED)
    back = next(iter(world.inventory))
    failed = replace(back, state=MachineState.FAILED, last_error="HostLost: gone")
    world.forced.changed(failed, back, world.now, world.now)
    assert [world.cycle(replace(NEED, aggregate={"cpu": 4000})) for _ in range(5)] == [0] * 5


def test_a_machine_that_was_on_its_way_when_demand_shrank_explains_a_reclaim() -> None:
    world = World()
    arrived = next(iter(world.inventory))
    idle = replace(arrived, state=MachineState.IDLE, cluster="")
    coming = replace(arrived, state=MachineState.CONFIGURING)
    world.forced.changed(idle, coming, world.now, world.now - 3 * SECOND)
    world.forced.asked_for_less("c-1", world.now - 2 * SECOND)
    world.cycle(NEED)
    world.forced.changed(coming, arrived, world.now - SECOND, world.now)
    assert [world.cycle(replace(NEED, aggregate={"cpu": 4000})) for _ in range(5)] == [0] * 5


def test_a_machine_ordered_after_demand_shrank_explains_nothing() -> None:
    world = World()
    arrived = next(iter(world.inventory))
    idle = replace(arrived, state=MachineState.IDLE, cluster="")
    coming = replace(arrived, state=MachineState.CONFIGURING)
    world.forced.asked_for_less("c-1", world.now - 3 * SECOND)
    world.forced.changed(idle, coming, world.now, world.now - 2 * SECOND)
    world.cycle(NEED)
    world.forced.changed(coming, arrived, world.now - SECOND, world.now)
    assert sum(world.cycle(replace(NEED, aggregate={"cpu": 4000})) for _ in range(5)) > 0


def test_only_what_is_really_reclaimed_is_counted() -> None:
    world = World()
    world.cycle(NEED)
    less = Demand.of([], {"c-1": ClusterFacts()}, world.symbols)
    for _ in range(5):
        plan: Plan = Engine().decide(
            world.inventory.snapshot(), less, Policy(), world.carry, world.now
        )
        world.carry = plan.carry
        assert world.forced.unforced(plan, Policy(), world.now, np.zeros(0, np.int64)) == 0
        world.now += 10 * SECOND
    assert len(plan.actions) == 2


def test_a_roll_up_that_came_while_a_cycle_ran_explains_what_the_next_one_does() -> None:
    world = World()

    def cycle(need: Need) -> int:
        demand = Demand.of([need], {"c-1": ClusterFacts()}, world.symbols)
        read_unix_ns, world.now = world.now, world.now + SECOND
        plan: Plan = Engine().decide(
            world.inventory.snapshot(), demand, Policy(), world.carry, world.now
        )
        world.carry = plan.carry
        return world.forced.unforced(plan, Policy(), world.now, None, read_unix_ns)

    assert cycle(NEED) == 0
    world.forced.asked_for_less("c-1", world.now - SECOND // 2)
    less = replace(NEED, aggregate={"cpu": 4000})
    for _ in range(5):
        world.now += 10 * SECOND
        assert cycle(less) == 0


def test_what_a_gang_leaves_behind_is_forced_while_it_is_new_to_its_demand() -> None:
    world, gang = World(), replace(NEED, group="g")
    stamped = Stamp.for_need(gang, 9)
    world.inventory.put_many([m.but(stamp=stamped) for m in list(world.inventory)])
    world.cycle(gang)
    world.forced.gangs_changed("c-1", ["g", ""], world.now)
    assert [world.cycle() for _ in range(20)] == [0] * 20
    world.now += 900 * SECOND
    assert world.cycle() == 2


def test_what_is_left_of_a_gang_that_lost_a_machine_to_a_higher_need_is_forced() -> None:
    world, gang = World(), replace(NEED, group="g")
    stamped = Stamp.for_need(gang, 9)
    world.inventory.put_many([m.but(stamp=stamped) for m in list(world.inventory)])
    world.cycle(gang)
    urgent = replace(NEED, profile=Profile.of([], priority=1_000), aggregate={"cpu": 4000})
    assert world.cycle(urgent, gang) == 0
    taken = next(iter(world.inventory))
    world.inventory.put_many([taken.but(stamp=Stamp.for_need(urgent, 10))])
    assert [world.cycle(urgent) for _ in range(20)] == [0] * 20
    world.now += 900 * SECOND
    assert world.cycle(urgent) == 1


def test_what_is_left_of_a_gang_is_forced_when_a_need_before_it_took_what_it_waited_for() -> None:
    world, gang = World(), replace(NEED, group="g")
    serves, waits = (m.but(stamp=Stamp.for_need(gang, 9)) for m in list(world.inventory))
    idle = waits.but(state=MachineState.IDLE, cluster="")
    world.inventory.put_many([serves, idle])
    before = Profile.of([], priority=1, interruption=PenaltyBucket.DOLLARS_1)
    urgent = replace(NEED, profile=before, aggregate={"cpu": 4000})
    assert world.cycle(urgent, gang) == 0
    world.inventory.put_many([waits.but(stamp=Stamp.for_need(urgent, 10))])
    assert [world.cycle(urgent) for _ in range(20)] == [0] * 20
    world.now += 900 * SECOND
    assert world.cycle(urgent) == 1
