"""From machine objects to arrays: all the work that has to be done per machine, in one place.

Attributes are pulled out column by column, some thousand machines at a time so that they stay in
the processor's cache. What machines share (label sets, shapes, clusters, identities of stamps) is
interned once per distinct object or content, so the cost per machine is a few lookups. Everything
that can be refused is refused here, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._index import find_duplicate
from bigfleet.inventory._shared_labels import Contents, NumberMemo
from bigfleet.inventory._texts import PackedTexts
from bigfleet.inventory.errors import DuplicateMachineError, UnfitMachineError
from bigfleet.model.columns import Flag, Names, Symbols
from bigfleet.model.demand.taints import Taint
from bigfleet.model.machine import CapacityType, HostRef, Machine
from bigfleet.model.validation import MAX_PRICE_PER_HOUR

I64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.generic]
T = TypeVar("T", bound=np.generic)
Offered = tuple[str, str, str, str, CapacityType]
"""Provider, region, instance type, zone, capacity type."""
Shape = tuple[Offered, int, int, float, float, tuple[Taint, ...]]
"""What is offered; resources and allocatable as numbers, -1 for none; price, probability,
taints."""

SPARSE: Final = ("ending_at", "not_ready_since", "leaving_sequence")
"""Columns of what few machines have; 0 for none."""
_CHUNK: Final = 2048
_offered = attrgetter("provider", "region", "instance_type", "zone", "capacity_type")


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines as arrays, one entry per machine in the order they were given."""

    ids: PackedTexts
    hosts: PackedTexts
    columns: Mapping[str, Numbers]
    sparse: Mapping[str, I64]
    labels: I64
    """Number in `label_sets`."""
    label_sets: Sequence[Mapping[str, str]]
    shape: I64
    """Number in `shapes`."""
    shapes: Sequence[Shape]
    amounts: Sequence[Mapping[str, int]]
    errors: Mapping[int, str]
    """Last errors, by place in the batch."""


def gather(machines: Sequence[Machine], symbols: Symbols, host_providers: Names) -> Batch:
    """The batch of these machines, or a refusal that names the one that does not fit."""
    gathering = _Gathering(symbols, host_providers)
    for begin in range(0, max(len(machines), 1), _CHUNK):
        gathering.add(machines[begin : begin + _CHUNK])
    batch = gathering.batch()
    again = find_duplicate(batch.ids)
    if again >= 0:
        raise DuplicateMachineError(f"machine {machines[again].id!r} is listed twice: list it once")
    return batch


@dataclass
class _Gathering:
    """The columns of the machines added so far, in pieces."""

    symbols: Symbols
    host_providers: Names
    _ids: list[PackedTexts] = field(default_factory=list)
    _hosts: list[PackedTexts] = field(default_factory=list)
    _pieces: dict[str, list[Numbers]] = field(default_factory=dict)
    _label_sets: Contents[str] = field(default_factory=Contents)
    _amounts: Contents[int] = field(default_factory=Contents)
    _errors: dict[int, str] = field(default_factory=dict)
    _added: int = 0

    def __post_init__(self) -> None:
        clusters = self.symbols.clusters
        self._clusters = NumberMemo[str](lambda name: clusters.of(name) if name else -1)
        self._shapes = NumberMemo[Shape](lambda _: len(self._shapes))

    def add(self, machines: Sequence[Machine]) -> None:
        """Some machines more."""
        try:
            for name, numbers in self._columns(machines).items():
                self._pieces.setdefault(name, []).append(numbers)
        except OverflowError:
            # Who it was is found out only now: validated records do not come here.
            for machine in machines if len(machines) > 1 else ():
                _Gathering(self.symbols, self.host_providers).add([machine])
            raise UnfitMachineError(
                f"machine {machines[0].id!r} has a number of more than 64 bits, or 32 for pods: "
                "give times in nanoseconds"
            ) from None
        ids = PackedTexts.of([m.id for m in machines], "machine id")
        _refuse(ids.lengths == 0, machines, "has no id: every machine needs one")
        self._ids.append(ids)
        refs = ["" if m.host is None else m.host.ref for m in machines]
        self._hosts.append(PackedTexts.of(refs, "host reference"))
        self._errors |= {
            i: m.last_error for i, m in enumerate(machines, self._added) if m.last_error
        }
        self._added += len(machines)

    def batch(self) -> Batch:
        """All of them."""
        columns = {
            name: pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            for name, pieces in self._pieces.items()
        }
        apart = {
            name: columns.pop(name).astype(np.int64, copy=False)
            for name in (*SPARSE, "labels", "shape")
        }
        return Batch(
            ids=PackedTexts.joined(self._ids),
            hosts=PackedTexts.joined(self._hosts),
            columns=columns,
            sparse={name: apart[name] for name in SPARSE},
            labels=apart["labels"],
            label_sets=self._label_sets.distinct,
            shape=apart["shape"],
            shapes=list(self._shapes),
            amounts=self._amounts.distinct,
            errors=self._errors,
        )

    def _columns(self, machines: Sequence[Machine]) -> dict[str, Numbers]:
        clusters, host = self._clusters, self._host
        state = _numbers(machines, "state", np.int8)
        _refuse(state == 0, machines, "has no state: give it one of Speculative to Failed")
        ending_at = _numbers(machines, "interruption_at_ns", np.int64)
        not_ready_since = _numbers(machines, "not_ready_since_ns", np.int64)
        flags = (
            _numbers(machines, "do_not_disrupt", np.uint16) * np.uint16(Flag.DO_NOT_DISRUPT)
            | _numbers(machines, "excluded", np.uint16) * np.uint16(Flag.EXCLUDED)
            | _numbers(machines, "reserved", np.uint16) * np.uint16(Flag.RESERVED)
            | _numbers(machines, "backing_off", np.uint16) * np.uint16(Flag.BACKING_OFF)
            | (ending_at != 0) * np.uint16(Flag.ENDING)
            | (not_ready_since != 0) * np.uint16(Flag.NOT_READY)
        )
        return {
            "state": state,
            "cluster": np.array([clusters[m.cluster] for m in machines], np.int32),
            "idle_since": _numbers(machines, "idle_since_ns", np.int64),
            "pods": _pods(machines),
            "host": np.array([host(m.host) for m in machines], np.int32),
            "ending_at": ending_at,
            "not_ready_since": not_ready_since,
            **self._stamps(machines),
            **self._leavings(machines, flags),
            "labels": np.array(self._label_sets.number_all([m.labels for m in machines]), np.int64),
            "shape": self._shape(machines),
        }

    def _host(self, host: HostRef | None) -> int:
        return -1 if host is None else self.host_providers.of(host.provider)

    def _stamps(self, machines: Sequence[Machine]) -> dict[str, Numbers]:
        stamp, sequence = np.full(len(machines), -1, np.int32), np.zeros(len(machines), np.int64)
        stamped = [(i, s) for i, m in enumerate(machines) if (s := m.stamp) is not None]
        if stamped:
            at, stamps = zip(*stamped, strict=True)
            stamp[list(at)] = [self.symbols.identity(s) for s in stamps]
            sequence[list(at)] = [s.sequence for s in stamps]
        return {"stamp": stamp, "sequence": sequence}

    def _leavings(
        self, machines: Sequence[Machine], flags: npt.NDArray[np.uint16]
    ) -> dict[str, Numbers]:
        for_whom = np.full(len(machines), -1, np.int32)
        since, sequence = np.zeros(len(machines), np.int64), np.zeros(len(machines), np.int64)
        for i, machine in enumerate(machines):
            if (leaving := machine.leaving) is not None:
                flags[i] |= Flag.LEAVING | Flag.FINAL if leaving.final else Flag.LEAVING
                since[i] = leaving.since_ns
                if leaving.for_stamp is not None:
                    for_whom[i] = self.symbols.identity(leaving.for_stamp)
                    sequence[i] = leaving.for_stamp.sequence
        return {
            "flags": flags,
            "leaving_for": for_whom,
            "leaving_since": since,
            "leaving_sequence": sequence,
        }

    def _shape(self, machines: Sequence[Machine]) -> I64:
        price = _numbers(machines, "price_per_hour", np.float64)
        probability = _numbers(machines, "interruption_probability", np.float64)
        # Written so that NaN, which compares false with everything, is refused too.
        _refuse(~(abs(price) <= MAX_PRICE_PER_HOUR), machines, "has a price beyond all machines'")
        _refuse(~(abs(probability) <= 1), machines, "has a probability that is none: give 0 to 1")
        shapes = zip(
            map(_offered, machines),
            self._amounts.number_all([m.resources for m in machines]),
            self._amounts.number_all([m.allocatable for m in machines]),
            price.tolist(),
            probability.tolist(),
            [m.taints for m in machines],
            strict=True,
        )
        return np.fromiter(map(self._shapes.__getitem__, shapes), np.int64, len(machines))


def _pods(machines: Sequence[Machine]) -> npt.NDArray[np.int32]:
    pods = [m.pods for m in machines]
    known = np.array([count is not None for count in pods], np.bool_)
    column = np.array([-1 if count is None else count for count in pods], np.int32)
    _refuse(known & (column < 0), machines, "has less than no pods: count from 0")
    return column


def _numbers(machines: Sequence[Machine], name: str, dtype: type[T]) -> npt.NDArray[T]:
    return np.fromiter(map(attrgetter(name), machines), dtype, len(machines))


def _refuse(unfit: npt.NDArray[np.bool_], machines: Sequence[Machine], what: str) -> None:
    if unfit.any():
        raise UnfitMachineError(f"machine {machines[int(unfit.argmax())].id!r} {what}")
