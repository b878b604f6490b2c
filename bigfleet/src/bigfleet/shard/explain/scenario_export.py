"""The present state as a scenario file of the engine, to try "what if" on.

Scenario machines are known by a number, and a number's rack is fixed by a division. So machines of
one rack get neighbouring numbers, as many per rack as the largest has, and rack names that demand
speaks of are renamed with them; a machine without a rack becomes a rack of its own. What a file
cannot say is left out: excluded machines, drains in their grace, what DaemonSets take.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    MachineState,
    Need,
    Requirement,
    RequirementOperator,
    SpreadMode,
    format_resources,
)
from bigfleet.model.columns import UNAVAILABLE, Demand, MachineColumns
from bigfleet.model.lifecycle import HELD, STAMPED

I64 = npt.NDArray[np.int64]
S = MachineState

RACK_LABEL: Final = "topology.bigfleet/rack"
MOST_INDEX: Final = 9_999_999
"""Ids have seven digits."""
_HELD: Final = tuple(HELD)
_STAMPED_FOR: Final = tuple(STAMPED | HELD)
"""Also a draining machine is exported with the need that it drains for."""
_NEVER: Final = "bigfleet.lucy.sh/never"
_NEGATIVE: Final = frozenset({RequirementOperator.NOT_IN, RequirementOperator.DOES_NOT_EXIST})
_PIECE: Final = 256 * 1024


class ExportError(ValueError):
    """The state does not fit a scenario file."""


@dataclass(frozen=True)
class _Places:
    """Machines in the order of their numbers."""

    rows: I64
    index: I64
    rack: I64
    """-1 for machines without a rack."""
    rack_size: int
    rack_names: Mapping[str, str]
    """A rack's name here -> its name in the file."""


def scenario_pieces(fleet: MachineColumns, demand: Demand, name: str) -> Iterator[bytes]:
    """The file in pieces. Works on a snapshot, so it may run away from the event loop."""
    places = _places(fleet, demand)
    parts = _lines(fleet, demand, places, name)
    waiting: list[str] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PIECE:
            yield "".join(waiting).encode()
            waiting, size = [], 0
    yield "".join(waiting).encode()


def _lines(fleet: MachineColumns, demand: Demand, places: _Places, name: str) -> Iterator[str]:
    yield f'{{"name": {json.dumps(_plain(name))},\n "machines": ['
    yield from _listed(_records(fleet, demand, places))
    yield '],\n "needs": ['
    needs = (demand.need(row) for row in range(len(demand)))
    yield from _listed(_need(need, places.rack_names) for need in needs)
    yield "]}\n"


def _listed(documents: Iterable[Mapping[str, object]]) -> Iterator[str]:
    before = "\n  "
    for document in documents:
        yield before + json.dumps(document)
        before = ",\n  "


# -- machines ------------------------------------------------------------------------------------


def _columns(fleet: MachineColumns, demand: Demand, rows: I64) -> list[I64]:
    """What machines of one record have in common."""
    state = fleet.state[rows].astype(np.int64)
    cluster = np.where(np.isin(state, _HELD), fleet.cluster[rows], -1)
    need = np.where(np.isin(state, _STAMPED_FOR), _assigned(fleet, demand)[fleet.stamp[rows]], -1)
    apart = [fleet.topology[key][rows] for key in sorted(fleet.topology) if key != RACK_LABEL]
    columns = (fleet.cls[rows], state, cluster, need, *apart)
    return [np.asarray(column, np.int64) for column in columns]


def _assigned(fleet: MachineColumns, demand: Demand) -> I64:
    """Per identity, the row of demand it is for; the last place, for no stamp, is -1."""
    symbols = fleet.symbols
    out = np.full(symbols.identity_count + 1, -1, np.int64)
    if len(demand):
        key = symbols.identity_column("key")
        by_key = np.full(symbols.key_count, -1, np.int64)
        # Backwards, so that of several rows with one key the first stands.
        by_key[key[demand.identity[::-1]]] = np.arange(len(demand))[::-1]
        out[:-1] = by_key[key]
        out[demand.identity] = np.arange(len(demand))
    return out


def _places(fleet: MachineColumns, demand: Demand) -> _Places:
    rows = np.asarray(fleet.order, np.int64)
    rows = rows[(fleet.flags[rows] & UNAVAILABLE) == 0]
    rack, names = _racks(fleet, rows)
    order = np.lexsort((*reversed(_columns(fleet, demand, rows)), rack))
    rows, rack = rows[order], rack[order]
    racked = rows[rack >= 0]
    loose = rows[rack < 0]
    used, number, counts = np.unique(rack[rack >= 0], return_inverse=True, return_counts=True)
    size = int(counts.max(initial=1))
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    inside = np.arange(len(racked)) - first[number] if len(racked) else number
    index = np.concatenate([number * size + inside, len(used) * size + np.arange(len(loose))])
    if len(index) and int(index.max()) > MOST_INDEX:
        raise ExportError(
            f"{len(rows)} machines in racks of up to {size} do not fit a scenario file: its ids "
            "have seven digits; export a smaller shard"
        )
    return _Places(
        rows=np.concatenate([racked, loose]),
        index=index,
        rack=np.concatenate([number, np.full(len(loose), -1)]),
        rack_size=size,
        rack_names={names[int(old)]: f"r-{new:05d}" for new, old in enumerate(used)},
    )


def _racks(fleet: MachineColumns, rows: I64) -> tuple[I64, list[str]]:
    """Per machine the number of its rack, -1 for none, and the names of racks."""
    column = fleet.topology.get(RACK_LABEL)
    if column is not None:
        return np.asarray(column[rows], np.int64), list(fleet.topology_names[RACK_LABEL])
    names: dict[str, int] = {}
    of_class = [
        names.setdefault(labels[RACK_LABEL], len(names)) if RACK_LABEL in labels else -1
        for labels in fleet.classes.labels
    ]
    numbers = np.array(of_class, np.int64)
    return (numbers[fleet.cls[rows]] if len(numbers) else np.zeros(0, np.int64)), list(names)


def _records(fleet: MachineColumns, demand: Demand, places: _Places) -> Iterator[dict[str, object]]:
    rows = places.rows
    if not len(rows):
        return
    columns = [*_columns(fleet, demand, rows), places.rack]
    differs = np.zeros(len(rows) - 1, np.bool_)
    for column in columns:
        differs |= np.diff(column) != 0
    starts = np.concatenate([[0], np.flatnonzero(differs) + 1, [len(rows)]])
    cluster, need = columns[2], columns[3]
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield {
            "start": int(places.index[begin]),
            "count": end - begin,
            **({"rack_size": places.rack_size} if places.rack[begin] >= 0 else {}),
            **_attributes(fleet, int(rows[begin])),
            **({"cluster": _name(fleet, int(cluster[begin]))} if cluster[begin] >= 0 else {}),
            **({"assigned_need": int(need[begin])} if need[begin] >= 0 else {}),
        }


def _name(fleet: MachineColumns, cluster: int) -> str:
    return _plain(fleet.symbols.clusters[cluster])


def _attributes(fleet: MachineColumns, row: int) -> dict[str, object]:
    classes, cls = fleet.classes, int(fleet.cls[row])
    _, instance_type, zone, capacity_type = classes.offerings[int(classes.offering[cls])]
    from_fields = {
        LABEL_INSTANCE_TYPE: instance_type,
        LABEL_ZONE: zone,
        LABEL_CAPACITY_TYPE: capacity_type.label,
    }
    labels = {
        _plain(key): _plain(value)
        for key, value in classes.labels[cls].items()
        if key != RACK_LABEL and not from_fields.get(key)
    }
    for key, column in fleet.topology.items():
        if key != RACK_LABEL and column[row] >= 0:
            labels[_plain(key)] = _plain(fleet.topology_names[key][int(column[row])])
    names = fleet.symbols.resources
    offers = {
        names[d]: 1000 * whole + milli
        for d, (whole, milli) in enumerate(
            zip(classes.whole[cls].tolist(), classes.milli[cls].tolist(), strict=True)
        )
        if whole or milli
    }
    document: dict[str, object] = {
        "instance_type": _plain(instance_type),
        "zones": [_plain(zone)] if zone else [],
        "labels": labels,
        "capacity_type": capacity_type.camel,
        "price": int(classes.price[cls]) / 1e6,
        "interruption_probability": float(classes.probability[cls]),
        "allocatable": format_resources(offers),
        "taints": [asdict(taint) for taint in classes.taints[cls]],
    }
    filled = {key: value for key, value in document.items() if value}
    return {**filled, "state": MachineState(int(fleet.state[row])).title}


# -- needs ---------------------------------------------------------------------------------------


def _need(need: Need, racks: Mapping[str, str]) -> dict[str, object]:
    profile = need.profile
    requirements = [
        document
        for requirement in profile.requirements
        for document in _requirement(requirement, racks)
    ]
    document: dict[str, object] = {
        "requirements": requirements,
        "aggregate": format_resources(need.aggregate),
        "min_unit": format_resources(need.min_unit),
        "priority": profile.priority,
        "interruption_bucket": int(profile.interruption),
        "reclamation_bucket": int(profile.reclamation),
        "group": _plain(need.group),
        "size_class": _plain(need.size_class),
        "arrival_ns": max(0, need.arrival_ns),
        "tolerations": [asdict(toleration) for toleration in profile.tolerations],
        "spread": [
            {
                "key": _plain(spread.key),
                "max_skew": spread.max_skew,
                # What is not said does not constrain.
                "when": (spread.when or SpreadMode.SCHEDULE_ANYWAY).value,
            }
            for spread in profile.spread
        ],
    }
    filled = {key: value for key, value in document.items() if value}
    return {"cluster": _plain(need.cluster), **filled}


def _requirement(requirement: Requirement, racks: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """A requirement in the words of a file, which refuses some that the wire accepts."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in _NEGATIVE and (
        not key or (operator is RequirementOperator.NOT_IN and not values)
    ):
        return
    if (
        operator is RequirementOperator.UNSPECIFIED
        or not key
        or (operator is RequirementOperator.IN and not values)
    ):
        yield {"key": _NEVER, "op": RequirementOperator.EXISTS.value}
        yield {"key": _NEVER, "op": RequirementOperator.DOES_NOT_EXIST.value}
        return
    if key == RACK_LABEL:
        values = tuple(racks.get(value, f"unknown {value}") for value in values)
    document: dict[str, object] = {"key": _plain(key), "op": operator.value}
    if values:
        document["values"] = [_plain(value) for value in values]
    yield document


def _plain(text: str) -> str:
    """A text the file can hold: it refuses characters that cannot be printed."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
