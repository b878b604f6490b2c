"""Scenario files: a fleet and its demand as JSON, read strictly and written again.

The format is part of the specification of the engine: a record stands for `count` machines, a
need for one row of one cluster's demand. Missing keys have their obvious defaults, an unknown one
is an error, and every error is one line that names the file, the place and the value. How a
scenario becomes columns is described in `state`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from bigfleet.model import (
    CapacityType,
    MachineState,
    ModelError,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Resources,
    Spread,
    SpreadMode,
    bucket_from_int,
)
from bigfleet.model.demand.taints import Taint, Toleration, canonical_taints
from bigfleet.model.lifecycle import HELD
from bigfleet.model.validation import MAX_PRICE_PER_HOUR
from bigfleet.scenario.errors import ScenarioError
from bigfleet.scenario.fields import Fields, load_json, read_text

T = TypeVar("T")

RACK_LABEL: Final = "topology.bigfleet/rack"
MOST_INDEX: Final = 9_999_999
"""Ids have seven digits."""
MOST_MACHINES: Final = 2_000_000
"""More would not fit the memory of a small box while they are loaded."""
SHRUNK_AT: Final = 1
"""Stamps of a file carry the number 0: every row counts as shrunk since, so that what is too much
is given up costliest first."""

_MOST_OFFERED: Final = 2**48
_MOST_ASKED: Final = 2**61
"""Of one resource, by all needs together: more could not be added up in 64 bits."""
_MOST_NS: Final = 2**62
_STAMPED_FOR: Final = frozenset({MachineState.CREATING, MachineState.IDLE})
_STATES: Final = {state.title: state for state in MachineState if state}
_OPERATORS: Final = {
    op.value: op for op in RequirementOperator if op is not RequirementOperator.UNSPECIFIED
}
_MODES: Final = {mode.value: mode for mode in SpreadMode if mode.value}

_SCENARIO_KEYS: Final = ("name", "machines", "needs")
_MACHINE_KEYS: Final = (
    "start", "stride", "count", "instance_type", "zones", "rack_size", "labels", "capacity_type",
    "price", "interruption_probability", "allocatable", "state", "cluster", "assigned_need",
    "taints",
)  # fmt: skip
_NEED_KEYS: Final = (
    "cluster", "requirements", "aggregate", "min_unit", "priority", "interruption_bucket",
    "reclamation_bucket", "group", "size_class", "arrival_ns", "spread", "tolerations",
)  # fmt: skip

_TAINT_KEYS: Final = ("key", "value", "effect")
_TOLERATION_KEYS: Final = ("key", "operator", "value", "effect")


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """`count` machines that differ in index, rack and zone alone."""

    start: int = 0
    stride: int = 1
    count: int = 1
    instance_type: str = ""
    zones: tuple[str, ...] = ()
    rack_size: int = 1
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    capacity_type: CapacityType = CapacityType.UNSPECIFIED
    price: float = 0.0
    interruption_probability: float = 0.0
    allocatable: Resources = field(default_factory=dict, hash=False)
    state: MachineState = MachineState.IDLE
    cluster: str = ""
    assigned_need: int | None = None
    taints: tuple[Taint, ...] = ()

    @property
    def indices(self) -> range:
        """The numbers of its machines."""
        return range(self.start, self.start + self.count * self.stride, self.stride)

    def zone_of(self, rack: int) -> str:
        """The zone a rack stands in."""
        return self.zones[rack % len(self.zones)] if self.zones else ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fleet and its demand. `assigned_need` of a record is a place in `needs`."""

    name: str = ""
    machines: tuple[MachineRecord, ...] = ()
    needs: tuple[Need, ...] = ()

    @property
    def machine_count(self) -> int:
        """How many machines its records stand for."""
        return sum(record.count for record in self.machines)


def machine_id(index: int) -> str:
    """The id of the machine with this index."""
    return f"m-{index:07d}"


def rack_name(rack: int) -> str:
    """The value of the rack label."""
    return f"r-{rack:05d}"


def read_scenario(path: Path) -> Scenario:
    """The scenario of a file, or a ScenarioError."""
    return parse_scenario(read_text(path), str(path))


def parse_scenario(text: str | bytes, file: str = "scenario") -> Scenario:
    """The scenario of a JSON text; `file` is how a refusal calls it."""
    fields = Fields.of(file, "", load_json(text, file), _SCENARIO_KEYS)
    name = fields.text("name")
    profiles: dict[Profile, Profile] = {}
    asked: Counter[str] = Counter()
    needs = tuple(_need(f, profiles, asked) for f in fields.objects("needs", _NEED_KEYS))
    records = []
    total = 0
    for record_fields in fields.objects("machines", _MACHINE_KEYS):
        record = _record(record_fields, needs)
        total += record.count
        if total > MOST_MACHINES:
            record_fields.refuse("count", f"makes more than {MOST_MACHINES} machines: write fewer")
        records.append(record)
    _refuse_duplicates(file, records)
    return Scenario(name, tuple(records), needs)


def _record(fields: Fields, needs: tuple[Need, ...]) -> MachineRecord:
    start = fields.integer("start", 0, 0, MOST_INDEX)
    stride = fields.integer("stride", 1, 1, MOST_INDEX)
    count = fields.integer("count", 1, 0, MOST_MACHINES)
    if start + (count - 1) * stride > MOST_INDEX:
        fields.refuse("count", f"leads to an index above {MOST_INDEX}: ids have seven digits")
    labels = fields.mapping("labels")
    if RACK_LABEL in labels:
        fields.refuse("labels", f"names {RACK_LABEL}, which rack_size gives: leave it out")
    state = _named(fields, "state", _STATES, MachineState.IDLE)
    assigned = None
    if fields.values.get("assigned_need") is not None:
        if not needs:
            fields.refuse("assigned_need", "names a need, but the file has none")
        assigned = fields.integer("assigned_need", 0, 0, len(needs) - 1)
    return MachineRecord(
        start=start,
        stride=stride,
        count=count,
        instance_type=fields.text("instance_type"),
        zones=fields.texts("zones"),
        rack_size=fields.integer("rack_size", 1, 1, MOST_INDEX),
        labels=labels,
        capacity_type=_capacity_type(fields),
        price=fields.number("price", 0.0, MAX_PRICE_PER_HOUR),
        interruption_probability=fields.number("interruption_probability", 0.0, 1.0),
        allocatable=fields.resources("allocatable", _MOST_OFFERED),
        state=state,
        cluster=_cluster(fields, state, None if assigned is None else needs[assigned].cluster),
        assigned_need=assigned,
        taints=canonical_taints(_made(f, Taint.of) for f in fields.objects("taints", _TAINT_KEYS)),
    )


def _cluster(fields: Fields, state: MachineState, stamped: str | None) -> str:
    """The cluster a machine is bound to: what is said, or that of the need it was taken for."""
    cluster = fields.text("cluster")
    if state in HELD:
        if not cluster and not stamped:
            fields.refuse("cluster", f"a {state.title} machine is bound: name its cluster")
        return cluster or stamped or ""
    if cluster and not (state in _STAMPED_FOR and cluster == stamped):
        fields.refuse("cluster", f"cannot be: a {state.title} machine is not bound")
    return ""


def _need(fields: Fields, profiles: dict[Profile, Profile], asked: Counter[str]) -> Need:
    cluster = fields.text("cluster", None)
    if not cluster:
        fields.refuse("cluster", "is empty: name the cluster that asks")
    requirements = [
        _requirement(f) for f in fields.objects("requirements", ("key", "op", "values"))
    ]
    spread = [_spread(f) for f in fields.objects("spread", ("key", "max_skew", "when"))]
    profile = Profile.of(
        requirements,
        spread,
        fields.integer("priority", 0, -(2**31), 2**31 - 1),
        bucket_from_int(fields.integer("interruption_bucket", 0, 0, 27)),
        bucket_from_int(fields.integer("reclamation_bucket", 0, 0, 27)),
        [_made(f, Toleration.of) for f in fields.objects("tolerations", _TOLERATION_KEYS)],
    )
    aggregate = fields.resources("aggregate", _MOST_ASKED)
    asked.update(aggregate)
    if any(asked[name] > _MOST_ASKED * 1000 for name in aggregate):
        fields.refuse("aggregate", "makes the whole demand more than can be counted: write less")
    return Need(
        cluster=cluster,
        # Equal profiles are one object, so that each fingerprint is computed once.
        profile=profiles.setdefault(profile, profile),
        aggregate=aggregate,
        min_unit=fields.resources("min_unit", _MOST_ASKED),
        group=fields.text("group"),
        size_class=fields.text("size_class"),
        arrival_ns=fields.integer("arrival_ns", 0, 0, _MOST_NS),
        shrunk_at=SHRUNK_AT,
    )


def _requirement(fields: Fields) -> Requirement:
    key, operator = fields.text("key", None), _named(fields, "op", _OPERATORS, None)
    try:
        return Requirement.of(key, operator, fields.texts("values"))
    except ModelError as error:
        fields.refuse_as("values" if key else "key", error)


def _made(fields: Fields, make: Callable[..., T]) -> T:
    """A value made of the texts that are given."""
    try:
        return make(**{"key": "", **{key: fields.text(key) for key in fields.values}})
    except ModelError as error:
        fields.refuse_as("key", error)


def _spread(fields: Fields) -> Spread:
    key, skew = fields.text("key", None), fields.integer("max_skew", 1, 1, 2**31 - 1)
    try:
        return Spread(key, skew, _named(fields, "when", _MODES, SpreadMode.DO_NOT_SCHEDULE))
    except ModelError as error:
        fields.refuse_as("key", error)


def _capacity_type(fields: Fields) -> CapacityType:
    try:
        return CapacityType.from_camel(fields.text("capacity_type"))
    except ModelError as error:
        fields.refuse_as("capacity_type", error)


def _named(fields: Fields, key: str, names: Mapping[str, T], default: T | None) -> T:
    if key not in fields.values and default is not None:
        return default
    found = names.get(fields.text(key, None))
    if found is None:
        fields.refuse(key, f"is not known: use one of {', '.join(names)}")
    return found


def _refuse_duplicates(file: str, records: list[MachineRecord]) -> None:
    """Refuse an index that two records, or one twice, stand for."""
    if not records:
        return
    indices = np.concatenate([np.array(record.indices, np.int64) for record in records])
    owners = np.repeat(np.arange(len(records)), [record.count for record in records])
    order = np.argsort(indices, kind="stable")
    again = np.flatnonzero(np.diff(indices[order]) == 0)
    if len(again):
        first, second = order[again[0]], order[again[0] + 1]
        raise ScenarioError(
            f"{file}: machines[{owners[second]}]: machine {machine_id(int(indices[second]))!r} is "
            f"already one of machines[{owners[first]}]: give every machine one index"
        )
