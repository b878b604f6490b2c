"""From machine objects to arrays: all the work that has to be done per machine, in one place.

Attributes are pulled out column by column. What machines share (label sets, amounts, clusters,
identities of stamps) is interned once per distinct object or content, so the cost per machine is
a few lookups. Everything that can be refused is refused here, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._classes import Attributes, Classes
from bigfleet.inventory._index import find_duplicate
from bigfleet.inventory._sharing import Contents, Memo, SplitLabels
from bigfleet.inventory._texts import Packed
from bigfleet.inventory._topology import ALWAYS_MATCHABLE, MOST_VALUES, Topology
from bigfleet.inventory.errors import DuplicateMachineError, UnfitMachineError
from bigfleet.model.columns import Flag, Names, Symbols
from bigfleet.model.machine import CapacityType, Machine
from bigfleet.model.validation import MAX_PRICE_PER_HOUR

B = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)
_Offered = tuple[str, str, str, str, CapacityType]
_ClassKey = tuple[_Offered, int, int, int, float, float]


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines as arrays, one entry per machine in the order they were given."""

    ids: Packed
    hosts: Packed
    columns: Mapping[str, npt.NDArray[np.generic]]
    """Values of the row columns, by name; the class is a number in `classes`."""
    classes: Sequence[Attributes]
    topology: Mapping[str, I32]
    sparse: Mapping[str, I64]
    """Values few machines have, by name; 0 for none."""
    errors: Mapping[int, str]
    """Last errors, by place in the batch."""


def gather(
    machines: Sequence[Machine], symbols: Symbols, topology: Topology, host_providers: Names
) -> Batch:
    """The batch of these machines, or a refusal that names the one that does not fit."""
    ids = [m.id for m in machines]
    packed = Packed.of(ids, "machine id")
    _refuse(packed.lengths == 0, machines, "has no id: every machine needs one")
    again = find_duplicate(packed)
    if again >= 0:
        raise DuplicateMachineError(f"machine {ids[again]!r} is listed twice: list it once")
    try:
        return _gathered(machines, packed, symbols, topology, host_providers)
    except OverflowError:
        # Who it was is found out only now: validated records do not come here.
        if len(machines) > 1:
            for machine in machines:
                gather([machine], symbols, topology, host_providers)
        raise UnfitMachineError(
            f"machine {ids[0]!r} has a number of more than 64 bits, or 32 for pods: "
            "give times in nanoseconds"
        ) from None


def overflowing_labels(
    machines: Sequence[Machine], topology: Topology, classes: Classes
) -> Iterator[str]:
    """Labels that would have too many values to be part of classes, were these machines added."""
    apart = set(topology.keys) | ALWAYS_MATCHABLE
    values: dict[str, set[str]] = {}
    for labels in {id(m.labels): m.labels for m in machines}.values():
        for key, value in labels.items():
            if key in apart:
                continue
            seen = values.get(key)
            if seen is None:
                seen = values[key] = set(classes.values_of(key))
            seen.add(value)
            if len(seen) > MOST_VALUES:
                apart.add(key)
                yield key


def _gathered(
    machines: Sequence[Machine],
    ids: Packed,
    symbols: Symbols,
    topology: Topology,
    host_providers: Names,
) -> Batch:
    cluster = Memo[str](lambda name: symbols.clusters.of(name) if name else -1)
    hosts = [m.host for m in machines]
    host_of = [-1 if host is None else host_providers.of(host.provider) for host in hosts]
    columns: dict[str, npt.NDArray[np.generic]] = {
        "state": _numbers(machines, "state", np.int8),
        "cluster": np.array([cluster[m.cluster] for m in machines], np.int32),
        "idle_since": _numbers(machines, "idle_since_ns", np.int64),
        "pods": _pods(machines),
        "host": np.array(host_of, np.int32),
    }
    _refuse(columns["state"] == 0, machines, "has no state: give it one of Speculative to Failed")
    sparse = {
        "ending_at": _numbers(machines, "interruption_at_ns", np.int64),
        "not_ready_since": _numbers(machines, "not_ready_since_ns", np.int64),
    }
    leaving = _stamps(machines, symbols, columns, sparse)
    columns["flags"] = (
        leaving * np.uint8(Flag.LEAVING)
        | _numbers(machines, "do_not_disrupt", np.uint8) * np.uint8(Flag.DO_NOT_DISRUPT)
        | _numbers(machines, "excluded", np.uint8) * np.uint8(Flag.EXCLUDED)
        | (sparse["ending_at"] != 0) * np.uint8(Flag.ENDING)
        | (sparse["not_ready_since"] != 0) * np.uint8(Flag.NOT_READY)
    )
    labels = SplitLabels([m.labels for m in machines], topology)
    columns["cls"], classes = _classes(machines, labels)
    return Batch(
        ids=ids,
        hosts=Packed.of(["" if host is None else host.ref for host in hosts], "host reference"),
        columns=columns,
        classes=classes,
        topology=labels.topology,
        sparse=sparse,
        errors={i: m.last_error for i, m in enumerate(machines) if m.last_error},
    )


def _stamps(
    machines: Sequence[Machine],
    symbols: Symbols,
    columns: dict[str, npt.NDArray[np.generic]],
    sparse: dict[str, I64],
) -> npt.NDArray[np.uint8]:
    """Fill in what stamps and leavings say; returns who is leaving."""
    count, identity = len(machines), symbols.identity
    stamp, leaving_for = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    sequence, since, leaving_sequence = (np.zeros(count, np.int64) for _ in range(3))
    leaving = np.zeros(count, np.uint8)
    stamped = [(i, s) for i, m in enumerate(machines) if (s := m.stamp) is not None]
    at = np.array([i for i, _ in stamped], np.int64)
    stamp[at] = [identity(s) for _, s in stamped]
    sequence[at] = [s.sequence for _, s in stamped]
    for i, left in [(i, x) for i, m in enumerate(machines) if (x := m.leaving) is not None]:
        leaving[i], since[i] = 1, left.since_ns
        if left.for_stamp is not None:
            leaving_for[i] = identity(left.for_stamp)
            leaving_sequence[i] = left.for_stamp.sequence
    columns.update(stamp=stamp, sequence=sequence, leaving_for=leaving_for, leaving_since=since)
    sparse["leaving_sequence"] = leaving_sequence
    return leaving


def _classes(machines: Sequence[Machine], labels: SplitLabels) -> tuple[I32, list[Attributes]]:
    price = _numbers(machines, "price_per_hour", np.float64)
    probability = _numbers(machines, "interruption_probability", np.float64)
    # Written so that NaN, which compares false with everything, is refused too.
    _refuse(~(abs(price) <= MAX_PRICE_PER_HOUR), machines, "has a price no class can have")
    _refuse(~(abs(probability) <= 1), machines, "has a probability outside of 0 to 1")
    amounts = Contents[int]()
    distinct: list[Attributes] = []

    def define(key: _ClassKey) -> int:
        offered, plain, base, given, *money = key
        resources = dict(amounts.distinct[base])
        allocatable = None if given < 0 else dict(amounts.distinct[given])
        distinct.append(
            Attributes(*offered, labels.plain_sets[plain], resources, allocatable, *money)
        )
        return len(distinct) - 1

    offered = attrgetter("provider", "region", "instance_type", "zone", "capacity_type")
    keys = zip(
        map(offered, machines),
        labels.plain,
        amounts.number_all(m.resources for m in machines),
        amounts.number_all(m.allocatable for m in machines),
        price.tolist(),
        probability.tolist(),
        strict=True,
    )
    memo = Memo[_ClassKey](define)
    return np.fromiter(map(memo.__getitem__, keys), np.int32, len(machines)), distinct


def _pods(machines: Sequence[Machine]) -> I32:
    pods = [m.pods for m in machines]
    known = np.array([count is not None for count in pods], np.bool_)
    column = np.array([-1 if count is None else count for count in pods], np.int32)
    _refuse(known & (column < 0), machines, "has less than no pods: count from 0")
    return column


def _numbers(machines: Sequence[Machine], name: str, dtype: type[T]) -> npt.NDArray[T]:
    return np.fromiter(map(attrgetter(name), machines), dtype, len(machines))


def _refuse(unfit: B, machines: Sequence[Machine], what: str) -> None:
    if unfit.any():
        raise UnfitMachineError(f"machine {machines[int(unfit.argmax())].id!r} {what}")
