"""Scenario files: what is read, what is assumed, and how each bad input is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from bigfleet.decision import Engine
from bigfleet.model import CapacityType, MachineState, PenaltyBucket, RequirementOperator
from bigfleet.scenario.document import MachineRecord, parse_scenario, read_scenario
from bigfleet.scenario.errors import ScenarioError
from bigfleet.scenario.state import ScenarioState, machines_of
from bigfleet.scenario.writer import scenario_text

FULL = {
    "name": "all keys",
    "machines": [
        {
            "start": 48,
            "stride": 2,
            "count": 3,
            "instance_type": "gp.4xlarge",
            "zones": ["z-a", "z-b", "z-c"],
            "rack_size": 50,
            "labels": {"pool": "p0"},
            "capacity_type": "Spot",
            "price": 0.48,
            "interruption_probability": 0.1,
            "allocatable": {"cpu": "15890m", "memory": "60Gi"},
            "state": "Configured",
            "cluster": "c-000",
            "assigned_need": 0,
        }
    ],
    "needs": [
        {
            "cluster": "c-000",
            "requirements": [{"key": "pool", "op": "In", "values": ["p0"]}],
            "aggregate": {"cpu": "30"},
            "min_unit": {"cpu": "1500m"},
            "priority": 100,
            "interruption_bucket": 1,
            "reclamation_bucket": 27,
            "group": "g",
            "size_class": "s",
            "arrival_ns": 7,
            "spread": [{"key": "zone", "max_skew": 2, "when": "ScheduleAnyway"}],
        }
    ],
}


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "fleet.json")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("fleet.json: ")
    return message.removeprefix("fleet.json: ")


def machine(**keys: object) -> str:
    return json.dumps({"machines": [{}, {"start": 1, **keys}]})


def need(**keys: object) -> str:
    return json.dumps({"needs": [{"cluster": "c", **keys}]})


def test_every_key_of_the_format_is_read() -> None:
    scenario = parse_scenario(json.dumps(FULL))
    (record,), (row,) = scenario.machines, scenario.needs
    assert (record.start, record.stride, record.count, record.rack_size) == (48, 2, 3, 50)
    assert record.capacity_type is CapacityType.SPOT
    assert record.state is MachineState.CONFIGURED
    assert record.allocatable == {"cpu": 15_890, "memory": 60 * 1024**3 * 1000}
    assert (record.price, record.interruption_probability) == (0.48, 0.1)
    assert row.profile.requirements[0].operator is RequirementOperator.IN
    assert row.profile.reclamation is PenaltyBucket.PINNED
    assert (row.group, row.size_class, row.arrival_ns) == ("g", "s", 7)
    assert row.profile.spread[0].max_skew == 2


def test_a_scenario_written_and_read_again_is_the_same() -> None:
    scenario = parse_scenario(json.dumps(FULL))
    assert parse_scenario(scenario_text(scenario)) == scenario


def test_missing_keys_have_their_obvious_defaults() -> None:
    scenario = parse_scenario('{"machines": [{}], "needs": [{"cluster": "c"}]}')
    assert scenario.machines == (MachineRecord(),)
    assert parse_scenario("{}").machine_count == 0


def test_ids_racks_and_zones_follow_from_the_index() -> None:
    machines = list(machines_of(parse_scenario(json.dumps(FULL))))
    assert [m.id for m in machines] == ["m-0000048", "m-0000050", "m-0000052"]
    assert [m.labels["topology.bigfleet/rack"] for m in machines] == [
        "r-00000",
        "r-00001",
        "r-00001",
    ]
    assert [m.zone for m in machines] == ["z-a", "z-b", "z-b"]


def test_a_machine_carries_the_stamp_of_its_assigned_need() -> None:
    scenario = parse_scenario(json.dumps(FULL))
    stamp = next(machines_of(scenario)).stamp
    assert stamp is not None
    assert stamp.key == scenario.needs[0].stamp_key
    assert stamp.sequence == 0


def test_a_bound_machine_without_a_cluster_belongs_to_that_of_its_need() -> None:
    text = (
        '{"machines": [{"state": "Configured", "assigned_need": 0}], "needs": [{"cluster": "c"}]}'
    )
    assert parse_scenario(text).machines[0].cluster == "c"


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ('{"machine": []}', "machine: ", "[]"),
        (machine(colour="red"), "machines[1].colour: ", '"red"'),
        (need(prio=3), "needs[0].prio: ", "3"),
        (need(requirements=[{"k": "x"}]), "needs[0].requirements[0].k: ", '"x"'),
        (need(spread=[{"by": "x"}]), "needs[0].spread[0].by: ", '"x"'),
        (machine(price=-1), "machines[1].price: ", "-1"),
        (machine(price="cheap"), "machines[1].price: ", '"cheap"'),
        (machine(price=10**400), "machines[1].price: ", "1000"),
        ('{"machines": [{"price": NaN}]}', "machines[0].price: ", "NaN"),
        ('{"machines": [{"price": Infinity}]}', "machines[0].price: ", "Infinity"),
        (machine(interruption_probability=1.5), "machines[1].interruption_probability: ", "1.5"),
        (machine(capacity_type="spot"), "machines[1].capacity_type: ", "'spot'"),
        (machine(state="Asleep"), "machines[1].state: ", '"Asleep"'),
        (machine(state="Unspecified"), "machines[1].state: ", '"Unspecified"'),
        (machine(state="Configured"), "machines[1].cluster: ", "is missing"),
        (machine(state="Speculative", cluster="c"), "machines[1].cluster: ", '"c"'),
        (machine(count=-1), "machines[1].count: ", "-1"),
        (machine(count=2.5), "machines[1].count: ", "2.5"),
        (machine(count=True), "machines[1].count: ", "true"),
        (machine(count=1_000_000, stride=100), "machines[1].count: ", "1000000"),
        (machine(stride=0), "machines[1].stride: ", "0"),
        (machine(rack_size=0), "machines[1].rack_size: ", "0"),
        (machine(assigned_need=0), "machines[1].assigned_need: ", "0"),
        (machine(allocatable={"cpu": "4x"}), "machines[1].allocatable: ", "'4x'"),
        (machine(allocatable={"cpu": "-4"}), "machines[1].allocatable: ", "'-4'"),
        (machine(allocatable={"cpu": 4}), "machines[1].allocatable.cpu: ", "4"),
        (machine(allocatable={"memory": "1e60"}), "machines[1].allocatable.memory: ", "1e60"),
        (machine(allocatable=[]), "machines[1].allocatable: ", "[]"),
        (machine(labels={"a/b": 1}), 'machines[1].labels["a/b"]: ', "1"),
        (machine(labels={"topology.bigfleet/rack": "r"}), "machines[1].labels: ", "rack_size"),
        (machine(zones="z-a"), "machines[1].zones: ", '"z-a"'),
        (machine(instance_type="a\nb"), "machines[1].instance_type: ", '"a\\nb"'),
        ('{"needs": [{}]}', "needs[0].cluster: ", "is missing"),
        ('{"needs": [{"cluster": ""}]}', "needs[0].cluster: ", '""'),
        (need(aggregate={"cpu": "1e100"}), "needs[0].aggregate.cpu: ", "1e100"),
        (need(interruption_bucket=28), "needs[0].interruption_bucket: ", "28"),
        (need(reclamation_bucket=-1), "needs[0].reclamation_bucket: ", "-1"),
        (need(priority=2**31), "needs[0].priority: ", "2147483648"),
        (need(requirements=[{"key": "x"}]), "needs[0].requirements[0].op: ", "is missing"),
        (need(requirements=[{"key": "x", "op": "in"}]), "needs[0].requirements[0].op: ", '"in"'),
        (
            need(requirements=[{"key": "x", "op": "In"}]),
            "needs[0].requirements[0].values: ",
            "x In",
        ),
        (
            need(requirements=[{"key": "x", "op": "Gt", "values": ["many"]}]),
            "needs[0].requirements[0].values: ",
            "many",
        ),
        (need(spread=[{"key": "x", "max_skew": 0}]), "needs[0].spread[0].max_skew: ", "0"),
        (need(spread=[{"key": "x", "when": "Never"}]), "needs[0].spread[0].when: ", '"Never"'),
        ('{"needs": [{"cluster": "a", "cluster": "b"}]}', "needs[0]: ", '"cluster"'),
        ("[]", "", "[]"),
        ('{"needs": [', "line 1, column 12", "not JSON"),
        ("", "line 1, column 1", "not JSON"),
        ("[" * 100_000, "", "nested too deeply"),
    ],
)
def test_a_bad_value_is_refused_with_its_place_and_the_value(
    text: str, place: str, value: str
) -> None:
    message = refusal(text)
    assert message.startswith(place)
    assert value in message


def test_an_index_that_comes_twice_is_refused_by_its_id() -> None:
    text = '{"machines": [{"start": 0, "stride": 3, "count": 4}, {"start": 5, "count": 5}]}'
    assert "'m-0000006' is already one of machines[0]" in refusal(text)
    assert refusal(text).startswith("machines[1]: ")


def test_demand_that_cannot_be_added_up_is_refused() -> None:
    rows = [{"cluster": "c", "group": str(i), "aggregate": {"cpu": "2E"}} for i in range(3)]
    assert refusal(json.dumps({"needs": rows})).startswith("needs[1].aggregate: ")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nowhere.json: cannot be read: No such file"):
        read_scenario(tmp_path / "nowhere.json")
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_scenario(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="byte 0 is not UTF-8"):
        read_scenario(tmp_path / "binary")


TAINTED: dict[str, Any] = {
    "machines": [
        {"state": "Idle", "allocatable": {"cpu": "4"},
         "taints": [{"key": "gpu", "value": "present"}, {"key": "a", "effect": "NoExecute"}]}
    ],
    "needs": [
        {"cluster": "c", "aggregate": {"cpu": "4"}, "min_unit": {"cpu": "4"},
         "tolerations": [{"operator": "Exists"}, {"key": "gpu", "operator": "Equal"}]},
    ],
}  # fmt: skip


def test_taints_and_tolerations_are_read_and_written_again() -> None:
    scenario = parse_scenario(json.dumps(TAINTED))
    assert [str(taint) for taint in scenario.machines[0].taints] == [
        "a:NoExecute", "gpu=present:NoSchedule"
    ]  # fmt: skip
    assert [t.key for t in scenario.needs[0].profile.tolerations] == ["", "gpu"]
    assert parse_scenario(scenario_text(scenario)) == scenario


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("machines", {"taints": [{"value": "x"}]}, "a taint has no key"),
        ("machines", {"taints": [{"key": "a", "effect": "Never"}]}, "'Never' of 'a' is unknown"),
        ("machines", {"taints": [{"key": "a", "operator": "Exists"}]}, "operator"),
        ("needs", {"tolerations": [{"key": "a", "operator": "Gt"}]}, "operator 'Gt' is unknown"),
    ],
)
def test_a_wrong_taint_or_toleration_is_refused_where_it_stands(
    place: str, value: dict[str, object], words: str
) -> None:
    document = {**TAINTED, place: [{**TAINTED[place][0], **value}]}
    with pytest.raises(ScenarioError, match=words):
        parse_scenario(json.dumps(document))


def test_a_plan_keeps_tainted_machines_for_needs_that_tolerate_them() -> None:
    world = ScenarioState.of(parse_scenario(json.dumps(TAINTED)))
    plan = Engine().decide(world.inventory.snapshot(), world.demand, world.policy, now=world.now)
    assert len(plan.actions.machine) == 1
    intolerant = [{**TAINTED["needs"][0], "tolerations": []}]
    world = ScenarioState.of(parse_scenario(json.dumps({**TAINTED, "needs": intolerant})))
    plan = Engine().decide(world.inventory.snapshot(), world.demand, world.policy, now=world.now)
    assert len(plan.actions.machine) == 0
