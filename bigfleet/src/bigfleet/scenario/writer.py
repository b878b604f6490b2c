"""Writing scenarios in the format `scenario` reads; keys at their default are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from bigfleet.model import Need, Requirement, Spread, format_resources
from bigfleet.scenario.document import MachineRecord, Scenario


def scenario_text(scenario: Scenario) -> str:
    """The file of a scenario: one line per record and per need, for people and for diffs."""
    document = scenario_to_json(scenario)
    parts = [f'{{"name": {json.dumps(document["name"])}']
    for key in ("machines", "needs"):
        rows = document[key]
        assert isinstance(rows, list)
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        parts.append(f'"{key}": [\n  {lines}\n ]' if rows else f'"{key}": []')
    return ",\n ".join(parts) + "}\n"


def scenario_to_json(scenario: Scenario) -> dict[str, object]:
    """The scenario as the file format writes it; keys at their default are left out."""
    return {
        "name": scenario.name,
        "machines": [_slim(_record_json(record)) for record in scenario.machines],
        "needs": [_slim(_need_json(need)) for need in scenario.needs],
    }


def _record_json(record: MachineRecord) -> Iterator[tuple[str, object, object]]:
    yield "start", record.start, None
    yield "stride", record.stride, 1
    yield "count", record.count, None
    yield "instance_type", record.instance_type, ""
    yield "zones", list(record.zones), []
    yield "rack_size", record.rack_size, 1
    yield "labels", dict(record.labels), {}
    yield "capacity_type", record.capacity_type.camel, ""
    yield "price", record.price, 0.0
    yield "interruption_probability", record.interruption_probability, 0.0
    yield "allocatable", format_resources(record.allocatable), {}
    yield "state", record.state.title, None
    yield "cluster", record.cluster, ""
    yield "assigned_need", record.assigned_need, None
    yield "taints", [asdict(taint) for taint in record.taints], []


def _need_json(need: Need) -> Iterator[tuple[str, object, object]]:
    profile = need.profile
    yield "cluster", need.cluster, None
    yield "requirements", [_slim(_requirement_json(r)) for r in profile.requirements], []
    yield "aggregate", format_resources(need.aggregate), {}
    yield "min_unit", format_resources(need.min_unit), {}
    yield "priority", profile.priority, 0
    yield "interruption_bucket", int(profile.interruption), 0
    yield "reclamation_bucket", int(profile.reclamation), 0
    yield "group", need.group, ""
    yield "size_class", need.size_class, ""
    yield "arrival_ns", need.arrival_ns, 0
    yield "spread", [_spread_json(s) for s in profile.spread], []
    yield "tolerations", [asdict(toleration) for toleration in profile.tolerations], []


def _requirement_json(requirement: Requirement) -> Iterator[tuple[str, object, object]]:
    yield "key", requirement.key, None
    yield "op", requirement.operator.value, None
    yield "values", list(requirement.values), []


def _spread_json(spread: Spread) -> dict[str, object]:
    return {"key": spread.key, "max_skew": spread.max_skew, "when": spread.when.value}


def _slim(items: Iterator[tuple[str, object, object]]) -> dict[str, object]:
    """Keys and values, without those that a reader would assume anyway."""
    return {key: value for key, value, default in items if value is not None and value != default}
