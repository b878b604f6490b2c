"""The present state of a shard, read from the scenario file that the shard exports.

A record stands for several machines; here they are machines again. What the file may not say is
left to the shard, which wrote it: a file that cannot be read is refused whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    ModelError,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    Stamp,
    bucket_from_int,
    parse_resources,
)
from bigfleet_dashboard.errors import SourceError

RACK_LABEL: Final = "topology.bigfleet/rack"
NOW: Final = 1_000_000 * 1_000_000_000
"""When the copy is looked at; what is idle became idle just then."""
_STATES: Final = {state.title: state for state in MachineState}
_WITHOUT_HOST: Final = frozenset({MachineState.SPECULATIVE, MachineState.CREATING})
_BOUND: Final = frozenset(
    {MachineState.CONFIGURING, MachineState.CONFIGURED, MachineState.DRAINING}
)
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Present:
    """Machines and needs of one shard."""

    machines: tuple[Machine, ...]
    needs: tuple[Need, ...]


def read_present(data: bytes) -> Present:
    """What a scenario file says."""
    try:
        document = msgspec.json.decode(data)
        needs = tuple(_need(each) for each in document.get("needs", ()))
        machines = tuple(
            machine
            for record in document.get("machines", ())
            for machine in _machines(record, needs)
        )
    except (
        msgspec.MsgspecError,
        ModelError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
    ) as error:
        raise SourceError(f"the shard's state cannot be read: {error}") from error
    return Present(machines, needs)


def _need(document: Document) -> Need:
    profile = Profile.of(
        [
            Requirement.of(each["key"], RequirementOperator(each["op"]), each.get("values", ()))
            for each in document.get("requirements", ())
        ],
        [
            Spread(each["key"], int(each["max_skew"]), SpreadMode(each["when"]))
            for each in document.get("spread", ())
        ],
        int(document.get("priority", 0)),
        bucket_from_int(int(document.get("interruption_bucket", 0))),
        bucket_from_int(int(document.get("reclamation_bucket", 0))),
    )
    return Need(
        cluster=document["cluster"],
        profile=profile,
        aggregate=parse_resources(document.get("aggregate", {})),
        min_unit=parse_resources(document.get("min_unit", {})),
        group=document.get("group", ""),
        size_class=document.get("size_class", ""),
        arrival_ns=int(document.get("arrival_ns", 0)),
        # Every row counts as shrunk since its machines were stamped: the most expensive go first.
        shrunk_at=1,
    )


def _machines(record: Document, needs: tuple[Need, ...]) -> Iterator[Machine]:
    state = _STATES[record.get("state", "Idle")]
    assigned = record.get("assigned_need")
    stamp = None if assigned is None else Stamp.for_need(needs[int(assigned)], 0)
    bound = state in _BOUND
    cluster = record.get("cluster", "") or (stamp.cluster if stamp and bound else "")
    allocatable = parse_resources(record.get("allocatable", {}))
    start, zones = int(record.get("start", 0)), record.get("zones", ())
    rack_size = int(record.get("rack_size", 1))
    for index in range(start, start + int(record.get("count", 1))):
        rack = index // rack_size
        name = f"m-{index:07d}"
        yield Machine(
            id=name,
            state=state,
            host=None if state in _WITHOUT_HOST else HostRef("copy", name),
            provider="copy",
            cluster=cluster if bound else "",
            instance_type=record.get("instance_type", ""),
            zone=zones[rack % len(zones)] if zones else "",
            capacity_type=CapacityType.from_camel(record.get("capacity_type", "")),
            labels={**record.get("labels", {}), RACK_LABEL: f"r-{rack:05d}"},
            resources=allocatable,
            price_per_hour=float(record.get("price", 0.0)),
            interruption_probability=float(record.get("interruption_probability", 0.0)),
            stamp=stamp,
            leaving=Departure(None, NOW) if state is MachineState.DRAINING else None,
            idle_since_ns=NOW if state is MachineState.IDLE else 0,
            last_error="Failed: when the copy was made" if state is MachineState.FAILED else "",
        )
