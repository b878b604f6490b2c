"""The machines of one shard: who there is, what changes, and a consistent view of it all.

One owner writes, in one thread. A snapshot costs a few views and stays as it is, whatever is
written later; a column is copied only when it is written while a snapshot still holds it. What a
provider reports comes in as machines; what a cycle decided is written column by column.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._change import keeps_attributes, write_change
from bigfleet.inventory._classes import ClassSlots
from bigfleet.inventory._recent import Recent
from bigfleet.inventory._store import Store
from bigfleet.inventory._topology import DEFAULT_TOPOLOGY_KEYS, MOST_VALUES, TopologyColumns
from bigfleet.inventory.errors import InventoryError, UnknownRowError
from bigfleet.model.columns import Flag, MachineColumns, Symbols
from bigfleet.model.machine import Machine, MachineState

B = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer]
"""Row numbers; none twice."""
Numbers = npt.NDArray[np.integer] | int
"""One number per row, or one for all of them."""
Marks = npt.NDArray[np.bool_] | bool

_STATES: Final = len(MachineState)


class Inventory:
    """Machines as columns. Row numbers stay as they are for as long as the machine is there."""

    def __init__(
        self,
        symbols: Symbols,
        topology_keys: Sequence[str] = DEFAULT_TOPOLOGY_KEYS,
        most_label_values: int = MOST_VALUES,
    ) -> None:
        """`topology_keys` are labels known to have many values; others with more than
        `most_label_values` are found out.
        """
        self._symbols = symbols
        self._topology_keys = tuple(topology_keys)
        self._most_label_values = most_label_values
        self._store = self._empty_store(ClassSlots(symbols.resources))
        self._recent = Recent()
        self._version = 0
        self._last: tuple[tuple[int, int], weakref.ref[MachineColumns]] | None = None

    # -- who there is ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, machine_id: object) -> bool:
        return isinstance(machine_id, str) and self.row(machine_id) >= 0

    def __iter__(self) -> Iterator[Machine]:
        """Every machine, by row."""
        for row in self.rows().tolist():
            yield self._store.read(row)

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def rows(self) -> I64:
        """The rows that hold a machine."""
        return self._store.alive()

    def row(self, machine_id: str) -> int:
        """The row of a machine, or -1."""
        return self._store.index.find(machine_id)

    def id_of(self, row: int) -> str:
        """The id of the machine in a row."""
        return self._store.ids[int(self._checked(np.array([row]))[0])]

    def get(self, machine_id: str) -> Machine | None:
        """The machine as it was put, with all that was changed since."""
        row = self.row(machine_id)
        if row < 0:
            return None
        machine = self._recent.get(row)
        if machine is None:
            machine = self._store.read(row)
            self._recent.keep(row, machine)
        return machine

    def counts_by_state(self) -> dict[MachineState, int]:
        """How many machines there are in each state."""
        store = self._store
        counts = np.bincount(store.state.data[: store.rows], minlength=_STATES)
        return {state: int(counts[state]) for state in MachineState if state}

    # -- what providers report -------------------------------------------------------------------

    def load(self, machines: Iterable[Machine]) -> None:
        """Replace everything by a full list. A refused list leaves everything as it was."""
        old = self._store.classes
        # Epochs go on growing: a slot must never look as if it still meant what it once did.
        classes = ClassSlots(self._symbols.resources, old.epoch, old.version)
        store = self._empty_store(classes)
        store.put(list(machines))
        store.settle()
        self._store = store
        self._recent.clear()
        self._version += 1

    def put(self, machine: Machine) -> int:
        """Insert or replace one machine; its row."""
        return int(self.put_many([machine])[0])

    def put_many(self, machines: Sequence[Machine]) -> I64:
        """Insert or replace machines, none twice; their rows. A refusal changes no machine."""
        rows = self._store.put(machines)
        self._recent.keep_all(rows.tolist(), machines)
        self._version += 1
        return rows

    def change(self, before: Machine, after: Machine) -> None:
        """Replace a machine by what it has become; `before` is what `get` gave for it."""
        row = self.row(before.id)
        if row < 0 or after.id != before.id or not keeps_attributes(before, after):
            self.put(after)
            return
        self._recent.drop((row,))
        write_change(self._store, row, before, after)
        self._recent.keep(row, after)
        self._version += 1

    def remove(self, machine_id: str) -> bool:
        """Forget a machine; whether there was one."""
        row = self.row(machine_id)
        if row < 0:
            return False
        self._store.remove(row)
        self._recent.drop((row,))
        self._version += 1
        return True

    # -- what a cycle changes --------------------------------------------------------------------

    def set_state(self, rows: Rows, state: Numbers) -> None:
        """Other states for these rows."""
        if not np.all(np.asarray(state) > 0):
            raise InventoryError("state 0 marks rows without a machine: remove machines by id")
        self._store.state.write(self._changing(rows), state)

    def bind(self, rows: Rows, clusters: Numbers) -> None:
        """Bind to clusters, by their numbers in `symbols.clusters`."""
        self._store.cluster.write(self._changing(rows), clusters)

    def unbind(self, rows: Rows) -> None:
        """Bind to no cluster."""
        self._store.cluster.erase(self._changing(rows))

    def stamp(self, rows: Rows, identities: Numbers, sequences: Numbers) -> None:
        """Stamp for identities, with the numbers in the order stamps are given."""
        at = self._changing(rows)
        self._store.stamp.write(at, identities)
        self._store.sequence.write(at, sequences)

    def clear_stamp(self, rows: Rows) -> None:
        """Take the stamps away."""
        at = self._changing(rows)
        self._store.stamp.erase(at)
        self._store.sequence.erase(at)

    def set_leaving(self, rows: Rows, for_identities: Numbers, since_ns: Numbers = 0) -> None:
        """Machines that are on their way out, since when, and for which stamp; -1 for none."""
        store, at = self._store, self._changing(rows)
        self._flag(at, Flag.LEAVING, True)
        self._flag(at, Flag.FINAL, False)
        store.leaving_for.write(at, for_identities)
        store.leaving_since.write(at, since_ns)
        store.sparse["leaving_sequence"].write(at, np.zeros(len(at), np.int64))

    def clear_leaving(self, rows: Rows) -> None:
        """Machines that stay."""
        store, at = self._store, self._changing(rows)
        self._flag(at, Flag.LEAVING | Flag.FINAL, False)
        store.leaving_for.erase(at)
        store.leaving_since.erase(at)
        store.sparse["leaving_sequence"].write(at, np.zeros(len(at), np.int64))

    def set_idle_since(self, rows: Rows, ns: Numbers) -> None:
        """When these became Idle; 0 for not."""
        self._store.idle_since.write(self._changing(rows), ns)

    # -- what clusters and providers say of machines that are there ------------------------------

    def set_pods(self, rows: Rows, pods: Numbers) -> None:
        """How many pods run on these; -1 for not known."""
        self._store.pods.write(self._changing(rows), pods)

    def set_do_not_disrupt(self, rows: Rows, marks: Marks) -> None:
        """Whether these must not be reclaimed."""
        self._flag(self._changing(rows), Flag.DO_NOT_DISRUPT, marks)

    def set_not_ready(self, rows: Rows, since_ns: Numbers) -> None:
        """Since when these are not Ready nodes; 0 for Ready, or nothing known."""
        self._set_since(rows, since_ns, Flag.NOT_READY, "not_ready_since")

    def set_ending(self, rows: Rows, at_ns: Numbers) -> None:
        """The announced end of these; 0 for none."""
        self._set_since(rows, at_ns, Flag.ENDING, "ending_at")

    def set_excluded(self, rows: Rows, marks: Marks) -> None:
        """Whether a person keeps these out of every decision."""
        self._flag(self._changing(rows), Flag.EXCLUDED, marks)

    def set_backing_off(self, rows: Rows, marks: Marks) -> None:
        """Whether these wait after a failed action."""
        self._flag(self._changing(rows), Flag.BACKING_OFF, marks)

    def renumber(self, symbols: Symbols, numbers: I32) -> None:
        """Speak in other symbols: `numbers` has the new number of every identity, -1 for none."""
        self._symbols = symbols
        self._store.renumber(symbols, numbers)
        self._version += 1

    # -- reading it all --------------------------------------------------------------------------

    def snapshot(self) -> MachineColumns:
        """The fleet as it is now: the same value as the last one if nothing changed since."""
        now = (self._version, len(self._symbols.resources))
        if self._last is not None and self._last[0] == now:
            last = self._last[1]()
            if last is not None:
                return last
        taken = self._store.snapshot()
        self._last = (now, weakref.ref(taken))
        return taken

    def memory(self) -> dict[str, float]:
        """Bytes of each column, of ids and hosts, and per machine in columns and altogether."""
        columns, texts = self._store.sizes(), self._store.text_sizes()
        machines = max(1, len(self))
        return {
            **columns,
            **texts,
            "columns_per_machine": sum(columns.values()) / machines,
            "per_machine": (sum(columns.values()) + sum(texts.values())) / machines,
        }

    def _empty_store(self, classes: ClassSlots) -> Store:
        topology = TopologyColumns(self._topology_keys, self._most_label_values)
        return Store(self._symbols, topology, classes)

    def _checked(self, rows: Rows) -> I64:
        store, at = self._store, np.asarray(rows, np.int64)
        if len(at):
            wrong = (at < 0) | (at >= store.rows)
            wrong |= store.state.data[np.where(wrong, 0, at)] == 0 if store.rows else True
            if wrong.any():
                raise UnknownRowError(
                    f"row {at[wrong.argmax()]} holds no machine: ask `row` for a machine's row"
                )
        return at

    def _changing(self, rows: Rows) -> I64:
        at = self._checked(rows)
        self._recent.drop(at.tolist())
        self._version += 1
        return at

    def _flag(self, rows: I64, flag: Flag, marks: Marks) -> None:
        flags = self._store.flags
        bit = np.uint16(flag)
        flags.write(rows, np.where(marks, flags.data[rows] | bit, flags.data[rows] & ~bit))

    def _set_since(self, rows: Rows, ns: Numbers, flag: Flag, name: str) -> None:
        at = self._changing(rows)
        numbers = np.broadcast_to(np.asarray(ns, np.int64), len(at))
        self._flag(at, flag, numbers != 0)
        self._store.sparse[name].write(at, numbers)
