"""The machines of one shard as columns, from the records the shard lists.

One machine is a handful of bytes here beside its id: what machines of one class share is kept once.
Errors and announced ends are rare and kept aside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import CapacityType, MachineState, bucket_of
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_dashboard.state.names import MachineClass, Names

STATES: Final = tuple(state.title for state in MachineState)
CAPACITY: Final = tuple(kind.camel or "Unspecified" for kind in CapacityType)
_PENALTY: Final = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars"
_PRIORITY: Final = "bigfleet.lucy.sh/assigned-priority"

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class MachineTable:
    """Columns in the order of the shard's list, which is by id."""

    ids: list[str] = field(default_factory=list)
    state: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    cls: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    """Which of `classes`."""
    cluster: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    bucket: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Of the interruption penalty a bound machine was taken for; 0 where none was stated."""
    priority: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    errors: dict[int, str] = field(default_factory=dict)
    ending: dict[int, int] = field(default_factory=dict)
    """Rows whose end was announced -> Unix nanoseconds."""
    classes: tuple[MachineClass, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


class TableBuilder:
    """Takes batches of records, and is a table at the end."""

    def __init__(self, names: Names, shard: str) -> None:
        self._names, self._shard = names, shard
        self._ids: list[str] = []
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._errors: dict[int, str] = {}
        self._ending: dict[int, int] = {}
        self._classes: dict[MachineClass, int] = {}

    def add(self, machines: Iterable[pb.Machine]) -> None:
        """One batch."""
        for machine in machines:
            row = len(self._ids)
            self._ids.append(machine.id)
            bucket, priority = _stamp(machine)
            self._rows.append(
                (
                    min(max(machine.state, 0), len(STATES) - 1),
                    self._class(machine),
                    self._names.cluster(machine.cluster),
                    bucket,
                    priority,
                )
            )
            if machine.last_error:
                self._errors[row] = machine.last_error
            if machine.interruption_unix_nanos > 0:
                self._ending[row] = machine.interruption_unix_nanos

    def table(self) -> MachineTable:
        """What was added."""
        columns = np.array(self._rows, np.int32).reshape(-1, 5)
        return MachineTable(
            self._ids,
            columns[:, 0].astype(np.uint8),
            columns[:, 1].copy(),
            columns[:, 2].copy(),
            columns[:, 3].astype(np.uint8),
            columns[:, 4].copy(),
            self._errors,
            self._ending,
            tuple(self._classes),
        )

    def _class(self, machine: pb.Machine) -> int:
        price = machine.price_per_hour
        found = MachineClass(
            min(max(machine.capacity_type, 0), len(CAPACITY) - 1),
            machine.zone,
            machine.instance_type,
            # What is paid in advance may be written as next to nothing.
            round(price, 6) if math.isfinite(price) else 0.0,
            machine.interruption_probability,
            self._shard,
        )
        return self._classes.setdefault(found, len(self._classes))


def _stamp(machine: pb.Machine) -> tuple[int, int]:
    """Bucket and priority of what a machine serves; both 0 where nothing is said."""
    if not machine.cluster:
        return 0, 0
    metadata = machine.shard_metadata
    try:
        text = metadata.get(_PENALTY, "")
        bucket = int(bucket_of(float(text))) if text else 0
        priority = int(metadata.get(_PRIORITY, "0") or 0)
    except ValueError:
        return 0, 0
    return bucket, max(-(2**31), min(priority, 2**31 - 1))
