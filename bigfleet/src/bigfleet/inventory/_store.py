"""All that is held of a fleet, row by row: columns, ids, index, order, classes, topology.

Rows of removed machines are holes (state 0) until a new machine takes them. What is rare has no
column of its own but a sparse one. Nothing here knows what a change means: see `inventory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._classes import Attributes, ClassSlots
from bigfleet.inventory._column import Column, Sparse
from bigfleet.inventory._gather import SPARSE, Batch, gather
from bigfleet.inventory._index import IdIndex
from bigfleet.inventory._order import RowOrder
from bigfleet.inventory._shared_labels import overflowing_labels, split_labels
from bigfleet.inventory._texts import Texts
from bigfleet.inventory._topology import TopologyColumns
from bigfleet.model.columns import Flag, MachineColumns, Names, Symbols, renumbered
from bigfleet.model.machine import Departure, HostRef, Machine, MachineState, Stamp

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_STATES: Final = tuple(MachineState)
"""By number: looking an enum's member up by calling the enum costs more than all else here."""
_LEAVING, _FINAL, _DO_NOT_DISRUPT = (
    int(flag) for flag in (Flag.LEAVING, Flag.FINAL, Flag.DO_NOT_DISRUPT)
)
_EXCLUDED, _RESERVED, _BACKING_OFF = (
    int(flag) for flag in (Flag.EXCLUDED, Flag.RESERVED, Flag.BACKING_OFF)
)
AnyColumn = Column[np.int8] | Column[np.uint16] | Column[np.int32] | Column[np.int64]


class Store:
    """The rows of one inventory."""

    def __init__(self, symbols: Symbols, topology: TopologyColumns, classes: ClassSlots) -> None:
        self.symbols = symbols
        self.classes = classes
        self.topology = topology
        self.state = Column(np.int8)
        self.cls = Column(np.int32)
        self.cluster = Column(np.int32, -1)
        self.stamp = Column(np.int32, -1)
        self.sequence = Column(np.int64)
        self.leaving_for = Column(np.int32, -1)
        self.leaving_since = Column(np.int64)
        self.flags = Column(np.uint16)
        self.idle_since = Column(np.int64)
        self.pods = Column(np.int32, -1)
        self.host = Column(np.int32, -1)
        self.columns: Mapping[str, AnyColumn] = {
            name: column for name, column in vars(self).items() if isinstance(column, Column)
        }
        self.sparse = {name: Sparse() for name in SPARSE}
        self.ids = Texts()
        self.hosts = Texts()
        self.index = IdIndex(self.ids)
        self.order = RowOrder()
        self.rows = 0
        self.holes: list[int] = []
        self._host_providers = Names()
        self._errors: dict[int, str] = {}

    def __len__(self) -> int:
        return self.rows - len(self.holes)

    def alive(self) -> I64:
        """The rows that hold a machine."""
        return np.flatnonzero(self.state.data[: self.rows])

    def put(self, machines: Sequence[Machine]) -> I64:
        """Insert or replace machines; the row of each."""
        batch = gather(machines, self.symbols, self._host_providers)
        self.ids.make_room(len(batch.ids.blob))
        self.hosts.make_room(len(batch.hosts.blob))
        for label in list(overflowing_labels(batch.label_sets, self.topology, self.classes)):
            self.topology.promote(label, self.classes, self.cls, self.state.data[: self.rows])
        rows = self.index.find_all(batch.ids)
        new = rows < 0
        if new.any():
            self._place(rows, new, batch)
        self._classify(rows, new, batch)
        for name, values in batch.columns.items():
            self.columns[name].write(rows, values)
        for name, numbers in batch.sparse.items():
            self.sparse[name].write(rows, numbers)
        self.hosts.write(rows, batch.hosts)
        self._note_errors(rows, batch.errors)
        if new.any():
            self.index.insert(rows[new], self.alive)
            self.order.add(rows[new])
        return rows

    def write_host(self, row: int, host: HostRef | None) -> None:
        """Another host for one row, or none."""
        self.hosts.put(row, "" if host is None else host.ref, "host reference")
        self.host.put(row, -1 if host is None else self._host_providers.of(host.provider))

    def remove(self, row: int) -> None:
        """Make a hole of a row that holds a machine."""
        rows = np.array([row], np.int64)
        self.index.remove(row)
        self.order.drop(row)
        self.classes.release(self.cls.data[rows])
        for column in self.columns.values():
            column.erase(rows)
        self.topology.erase(rows)
        for sparse in self.sparse.values():
            sparse.write(rows, np.zeros(1, np.int64))
        self._errors.pop(row, None)
        self.ids.erase(rows)
        self.hosts.erase(rows)
        self.holes.append(row)

    def read(self, row: int) -> Machine:
        """The machine of a row."""
        flags, attributes = int(self.flags.data[row]), self.classes[int(self.cls.data[row])]
        cluster, pods = int(self.cluster.data[row]), int(self.pods.data[row])
        return Machine(
            id=self.ids[row],
            state=_STATES[self.state.data[row]],
            host=self._host_of(row),
            provider=attributes.provider,
            region=attributes.region,
            cluster="" if cluster < 0 else self.symbols.clusters[cluster],
            instance_type=attributes.instance_type,
            zone=attributes.zone,
            capacity_type=attributes.capacity_type,
            labels={**attributes.labels, **self.topology.labels_of(row)},
            resources=attributes.resources,
            allocatable=attributes.allocatable,
            price_per_hour=attributes.price,
            interruption_probability=attributes.probability,
            taints=attributes.taints,
            interruption_at_ns=self.sparse["ending_at"].get(row),
            stamp=self._stamp(self.stamp, row, int(self.sequence.data[row])),
            leaving=self._leaving(row, flags & _FINAL != 0) if flags & _LEAVING else None,
            idle_since_ns=int(self.idle_since.data[row]),
            not_ready_since_ns=self.sparse["not_ready_since"].get(row),
            do_not_disrupt=flags & _DO_NOT_DISRUPT != 0,
            pods=None if pods < 0 else pods,
            last_error=self._errors.get(row, ""),
            excluded=flags & _EXCLUDED != 0,
            reserved=flags & _RESERVED != 0,
            backing_off=flags & _BACKING_OFF != 0,
        )

    def renumber(self, symbols: Symbols, numbers: I32) -> None:
        """Speak in other symbols, where identities have other numbers."""
        self.symbols = symbols
        for column in (self.stamp, self.leaving_for):
            column.replace(renumbered(column.data, numbers))

    def settle(self) -> None:
        """Do what was put off until the next read."""
        self.order.settle(self.ids, self.state.data[: self.rows])
        self.topology.squeeze(self.rows, len(self))

    def snapshot(self) -> MachineColumns:
        """The columns as they are now, whatever happens later."""
        self.settle()
        rows = self.rows
        topology, names = self.topology.lend(rows)
        return MachineColumns(
            symbols=self.symbols,
            classes=self.classes.table(),
            state=self.state.lend(rows),
            cls=self.cls.lend(rows),
            cluster=self.cluster.lend(rows),
            stamp=self.stamp.lend(rows),
            sequence=self.sequence.lend(rows),
            leaving_for=self.leaving_for.lend(rows),
            flags=self.flags.lend(rows),
            idle_since=self.idle_since.lend(rows),
            pods=self.pods.lend(rows),
            topology=topology,
            topology_names=names,
            ending_at=self.sparse["ending_at"].lend(),
            not_ready_since=self.sparse["not_ready_since"].lend(),
            order=self.order.order,
            rank=self.order.rank,
            ids=self.ids.lend(rows),
        )

    def sizes(self) -> dict[str, int]:
        """Bytes of every column."""
        columns = {name: column.nbytes for name, column in self.columns.items() if name != "host"}
        return columns | self.topology.sizes() | {
            "order": self.order.order.nbytes, "rank": self.order.rank.nbytes,
        }  # fmt: skip

    def text_sizes(self) -> dict[str, int]:
        """Bytes of what is not columns: ids, their index, hosts, and what few machines have."""
        sparse = sum(column.nbytes for column in self.sparse.values())
        return {
            "ids": self.ids.nbytes,
            "id index": self.index.nbytes,
            "hosts": self.host.nbytes + self.hosts.nbytes,
            "topology names": self.topology.names_nbytes,
            "sparse": sparse + sum(len(text) + 160 for text in self._errors.values()),
        }

    def _place(self, rows: I64, new: npt.NDArray[np.bool_], batch: Batch) -> None:
        """Give rows to new machines, holes first, and write their ids."""
        places = np.flatnonzero(new)
        holes = min(len(places), len(self.holes))
        for place in places[:holes].tolist():
            rows[place] = self.holes.pop()
        grown = self.rows + len(places) - holes
        rows[places[holes:]] = np.arange(self.rows, grown)
        self.rows = grown
        for column in self.columns.values():
            column.reserve(grown)
        self.topology.reserve(grown)
        self.ids.reserve(grown)
        self.hosts.reserve(grown)
        self.ids.write(rows[places], batch.ids.select(places))

    def _classify(self, rows: I64, new: npt.NDArray[np.bool_], batch: Batch) -> None:
        """Write classes and topology."""
        plain, plain_sets, topology = split_labels(batch.label_sets, self.topology)
        mine = batch.labels
        # A class is a shape with plain labels: two numbers made one, to find the distinct pairs.
        pairs, which = np.unique(batch.shape * len(plain_sets) + plain[mine], return_inverse=True)
        slots = [
            self.classes.intern(self._attributes(batch, shape, plain_sets[labels]))
            for shape, labels in (divmod(pair, len(plain_sets)) for pair in pairs.tolist())
        ]
        cls = np.array(slots, np.int32)[which]
        self.classes.acquire(cls)
        self.classes.release(self.cls.data[rows[~new]])
        self.cls.write(rows, cls)
        self.topology.write(rows, {key: column[mine] for key, column in topology.items()})

    def _attributes(self, batch: Batch, shape: int, labels: Mapping[str, str]) -> Attributes:
        offered, base, given, price, probability, taints = batch.shapes[shape]
        return Attributes(
            *offered,
            labels=labels,
            resources=dict(batch.amounts[base]),
            allocatable=None if given < 0 else dict(batch.amounts[given]),
            price=price,
            probability=probability,
            taints=taints,
        )

    def _note_errors(self, rows: I64, errors: Mapping[int, str]) -> None:
        if self._errors:
            for row in rows.tolist():
                self._errors.pop(row, None)
        self._errors |= {int(rows[place]): text for place, text in errors.items()}

    def _host_of(self, row: int) -> HostRef | None:
        provider = int(self.host.data[row])
        return None if provider < 0 else HostRef(self._host_providers[provider], self.hosts[row])

    def _stamp(self, column: Column[np.int32], row: int, sequence: int) -> Stamp | None:
        identity = int(column.data[row])
        return None if identity < 0 else self.symbols.stamp(identity, sequence)

    def _leaving(self, row: int, final: bool) -> Departure:
        sequence = self.sparse["leaving_sequence"].get(row)
        meant = self._stamp(self.leaving_for, row, sequence)
        return Departure(meant, int(self.leaving_since.data[row]), final)
