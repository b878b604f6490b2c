"""Guided fuzzing of everything that reads what others wrote: `python fuzzing.py TARGET ...`.

A target takes bytes. It may refuse them with the error it documents; anything else that is raised,
and anything accepted that does not survive being written and read again, is a finding. Parsers are
instrumented, so the fuzzer keeps whatever input reaches a new line. Its own arguments (`-runs=`,
`-seed=`) follow the target's name; the last is the folder in which it keeps its inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

atheris: Any = import_module("atheris")
PARSERS: Final = (
    "bigfleet.model.amounts.penalty",
    "bigfleet.model.demand.profile",
    "bigfleet.model.amounts.quantity",
    "bigfleet.model.demand.requirements",
    "bigfleet.model.amounts.resources",
    "bigfleet.model.validation",
    "bigfleet.scenario.fields",
    "bigfleet.scenario.document",
    "bigfleet.wire.machines",
    "bigfleet.wire.needs",
)

with atheris.instrument_imports(include=list(PARSERS)):
    from google.protobuf.message import DecodeError

    from bigfleet.model import (
        Machine,
        ModelError,
        Need,
        Profile,
        QuantityError,
        Requirement,
        parse_quantity,
    )
    from bigfleet.model.demand.requirements import RequirementOperator
    from bigfleet.scenario.document import parse_scenario
    from bigfleet.scenario.errors import ScenarioError
    from bigfleet.scenario.writer import scenario_text
    from bigfleet.wire.errors import UnknownStateError
    from bigfleet.wire.machines import machine_from_proto, machine_to_proto
    from bigfleet.wire.needs import need_from_proto, need_to_proto
    from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2

MOST_BINARY: Final = 2**63 - 1


def fuzz_quantity(data: bytes) -> None:
    """Whatever is read prints as something that means the same."""
    try:
        quantity = parse_quantity(data.decode("utf-8", "replace"))
    except QuantityError as error:
        refused(error)
        return
    text = str(quantity)
    if not (text.endswith("i") and abs(quantity.value()) > MOST_BINARY):
        assert parse_quantity(text) == quantity, text


def fuzz_scenario(data: bytes) -> None:
    """Whatever is read is written as a file that says the same."""
    try:
        scenario = parse_scenario(data, "file")
    except ScenarioError as error:
        refused(error)
        return
    assert parse_scenario(scenario_text(scenario)) == scenario


def fuzz_machine(data: bytes) -> None:
    """Whatever a provider's record says, it is a machine or refused with one line."""
    try:
        record = provider_pb2.Machine.FromString(data)
    except DecodeError:
        return
    try:
        machine = machine_from_proto(record, "p", "r", complain=lambda _: None)
    except (ModelError, UnknownStateError) as error:
        refused(error)
        return
    again = machine_from_proto(machine_to_proto(machine), "p", "r", complain=fail)
    assert again.stamp == machine.stamp, (again.stamp, machine.stamp)
    assert again.resources == machine.resources, (again.resources, machine.resources)


def fuzz_need(data: bytes) -> None:
    """Whatever a row of a roll-up says, it is a need or refused with one line."""
    try:
        row = capacity_pb2.CapacityNeed.FromString(data)
    except DecodeError:
        return
    try:
        need = need_from_proto(row, "c")
    except ModelError as error:
        refused(error)
        return
    again = need_from_proto(need_to_proto(need), "c")
    assert again == need, (again, need)
    assert again.key == need.key, need


def refused(error: Exception) -> None:
    """A refusal is one line that says something."""
    text = str(error)
    assert text, repr(error)
    assert "\n" not in text, text


def fail(complaint: str) -> None:
    """What we wrote ourselves gives no cause for complaint."""
    raise AssertionError(complaint)


TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = {
    "quantity": fuzz_quantity,
    "scenario": fuzz_scenario,
    "machine": fuzz_machine,
    "need": fuzz_need,
}


def beginnings(target: str) -> list[bytes]:
    """Inputs to begin with: valid ones, so that the fuzzer starts behind the first refusals."""
    if target == "quantity":
        return [b"1", b"1.5Gi", b"-2500m", b"+1e3", b".5E", b"12E-3", b"9223372036854775807Ei"]
    if target == "scenario":
        return [_scenario()]
    if target == "machine":
        return [machine_to_proto(_machine()).SerializeToString()]
    return [need_to_proto(_need()).SerializeToString()]


def _need() -> Need:
    wishes = [
        Requirement.of("a", RequirementOperator.IN, ["x", "y"]),
        Requirement.of("b", RequirementOperator.GT, ["3"]),
    ]
    profile = Profile.of(wishes, priority=7)
    return Need("c", profile, {"cpu": 4_500, "memory": 2_048_000}, {"cpu": 1_500}, group="g")


def _machine() -> Machine:
    from bigfleet.model import CapacityType, HostRef, MachineState, Stamp

    return Machine(
        id="m-1",
        state=MachineState.CONFIGURED,
        host=HostRef("p", "i-1"),
        provider="p",
        region="r",
        cluster="c",
        instance_type="t.large",
        zone="z-a",
        capacity_type=CapacityType.SPOT,
        labels={"pool": "x"},
        resources={"cpu": 4_000},
        price_per_hour=0.25,
        interruption_probability=0.1,
        stamp=Stamp.for_need(_need(), 3),
    )


def _scenario() -> bytes:
    return (
        b'{"name":"s","machines":[{"start":0,"stride":1,"count":2,"zones":["z"],"rack_size":2,'
        b'"labels":{"pool":"p"},"capacity_type":"Spot","price":0.5,"interruption_probability":0.1,'
        b'"allocatable":{"cpu":"4","memory":"1.5Gi"},"state":"Configured","cluster":"c",'
        b'"assigned_need":0}],"needs":[{"cluster":"c","requirements":[{"key":"pool","op":"In",'
        b'"values":["p"]},{"key":"n","op":"Gt","values":["3"]}],"aggregate":{"cpu":"4"},'
        b'"min_unit":{"cpu":"500m"},"priority":1,"interruption_bucket":2,"reclamation_bucket":1,'
        b'"group":"g","arrival_ns":1,"spread":[{"key":"zone","max_skew":1,'
        b'"when":"DoNotSchedule"}]}]}'
    )


def main(arguments: list[str]) -> None:
    """Fuzz one target; the process ends with 0 when nothing was found."""
    for number, data in enumerate(beginnings(arguments[1])):
        (Path(arguments[-1]) / f"beginning-{number}").write_bytes(data)
    atheris.Setup([arguments[0], *arguments[2:]], TARGETS[arguments[1]])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
