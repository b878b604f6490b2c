"""Exported states, read back by the engine's own reader: the same machines and the same needs."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Machine, MachineState, Need
from bigfleet.model.columns import Demand
from bigfleet.scenario.document import Scenario, parse_scenario
from bigfleet.scenario.state import ScenarioState, machines_of
from bigfleet.shard.explain.scenario_export import scenario_pieces
from fleets import NOW, RACK, Shape, case
from living import Living

S = MachineState
BOUND = (S.CONFIGURING, S.CONFIGURED, S.DRAINING)


def seen(machine: Machine, needs: list[Need]) -> tuple[object, ...]:
    """Everything of a machine that a file tells, its place apart."""
    stamped = machine.stamp is not None and machine.state in (S.CREATING, S.IDLE, *BOUND)
    key = machine.stamp.key if machine.stamp and stamped else None
    rows = tuple(row for row, need in enumerate(needs) if need.stamp_key == key)
    labels = {k: v for k, v in machine.labels.items() if k != RACK}
    return (
        machine.state,
        machine.instance_type,
        machine.zone,
        machine.capacity_type,
        machine.price_micro,
        machine.interruption_probability,
        machine.cluster if machine.state in BOUND else "",
        rows,
        tuple(sorted(labels.items())),
        machine.taints,
        tuple(sorted((k, v) for k, v in machine.effective_allocatable.items() if v)),
    )


def exported(machines: list[Machine], needs: list[Need]) -> Scenario:
    living = Living()
    fleet = living._put(machines).snapshot()
    demand = Demand.of(needs, {}, living.symbols)
    return parse_scenario(b"".join(scenario_pieces(fleet, demand, "shard-a")))


@given(st.integers(0, 20_000))
def test_a_state_comes_back_as_it_was(seed: int) -> None:
    made = case(seed, Shape(machines=24, needs=8))
    scenario = exported(made.machines, made.needs)
    assert scenario.name == "shard-a"
    kept = [m for m in made.machines if not (m.excluded or m.reserved)]
    back = list(machines_of(scenario))
    assert Counter(seen(m, made.needs) for m in kept) == Counter(
        seen(m, list(scenario.needs)) for m in back
    )
    assert racks(kept, made.needs) == racks(back, list(scenario.needs))
    asked = Counter((n.cluster, n.group, n.size_class, n.arrival_ns) for n in made.needs)
    assert asked == Counter(
        (n.cluster, n.group, n.size_class, n.arrival_ns) for n in scenario.needs
    )
    for before, after in zip(made.needs, scenario.needs, strict=True):
        assert after.aggregate == {k: v for k, v in before.aggregate.items() if v}
        assert after.profile.priority == before.profile.priority
        assert after.profile.tolerations == before.profile.tolerations
        assert after.profile.interruption == before.profile.interruption
        if all(r.key != RACK or not r.values for r in before.profile.requirements):
            assert after.profile.requirements == before.profile.requirements


def racks(machines: list[Machine], needs: list[Need]) -> Counter[frozenset[tuple[object, int]]]:
    """What stands together, whatever its rack is called.

    In a file every machine has a rack; racks of one machine tell nothing.
    """
    inside: dict[str, Counter[object]] = {}
    for machine in machines:
        rack = machine.labels.get(RACK)
        if rack:
            inside.setdefault(rack, Counter())[seen(machine, needs)] += 1
    return Counter(frozenset(c.items()) for c in inside.values() if c.total() > 1)


@given(st.integers(0, 200))
def test_an_exported_state_can_be_decided_on(seed: int) -> None:
    made = case(seed)
    world = ScenarioState.of(exported(made.machines, made.needs))
    plan = Living().engine.decide(
        world.inventory.snapshot(), world.demand, world.policy, world.carry, NOW
    )
    assert len(plan.fleet) == sum(not (m.excluded or m.reserved) for m in made.machines)
