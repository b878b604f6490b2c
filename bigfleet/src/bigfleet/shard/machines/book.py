"""The machines as this shard knows them: the only writer of their columns.

Every change of a machine goes through here, whether the shard causes it or a provider reports it:
so there is one place that keeps an action and an answer from crossing. While an action on a
machine is under way, what is listed of it is put aside; an answer that was asked for before the
last action ended may be older than that action and is taken only where it shows the end of what
the machine is doing.

While a decision is being made in another thread, the columns may be written (the decision reads a
snapshot), but the symbols both share must not grow: the few records that would bring a new name
wait until it is over.

Columns are the inventory's. Names of nodes, and what clusters report of them, are in
`node_observations`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ClockSet
from bigfleet.inventory import Inventory
from bigfleet.model import Departure, Machine, MachineState, Stamp
from bigfleet.model.columns import MachineColumns, Symbols
from bigfleet.model.lifecycle import BOUND, check_move
from bigfleet.observe.process import Clock
from bigfleet.shard.machines.merge_record import MergeResult, ends_transition, merge
from bigfleet.shard.machines.orders import Order, begun

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
S = MachineState
OnChange = Callable[[Machine | None, Machine | None], None]

_ACTED_KEPT: Final = 600.0
"""Seconds for which the end of an action is remembered: longer than any List may take."""
_BACK: Final = {
    S.CREATING: S.SPECULATIVE,
    S.CONFIGURING: S.IDLE,
    S.DELETING: S.IDLE,
    S.DRAINING: S.CONFIGURED,
}


class RecordEffect(Enum):
    """What became of an observed record."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    ASIDE = "aside"
    """An action is under way; looked at when it ends."""
    STALE = "stale"
    """Perhaps older than what is known."""


@dataclass(frozen=True, slots=True)
class RecordResult:
    """What a record changed."""

    seen: RecordEffect
    jumped: bool = False
    lost: bool = False
    freed: bool = False
    delivered: bool = False


class Book:
    """The shard's machines. One thread, one writer."""

    def __init__(self, symbols: Symbols, clock: Clock) -> None:
        self.symbols = symbols
        self._inventory = Inventory(symbols)
        self.on_change: list[OnChange] = []
        self._clock = clock
        self._busy: set[str] = set()
        self._aside: dict[str, Machine] = {}
        self._acted: dict[str, float] = {}
        self._moving_since: dict[str, tuple[MachineState, int]] = {}
        self.shapeless = False
        """Whether there are stamps that `complete_stamps` might complete."""
        self._deciding = False
        self._waiting: list[Machine] = []
        self._backing_off: set[str] = set()

    # -- reading ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._inventory)

    def __contains__(self, machine_id: object) -> bool:
        return machine_id in self._inventory

    def get(self, machine_id: str) -> Machine | None:
        return self._inventory.get(machine_id)

    def __iter__(self) -> Iterator[Machine]:
        return iter(self._inventory)

    @property
    def version(self) -> int:
        return self._inventory.version

    def snapshot(self) -> MachineColumns:
        return self._inventory.snapshot()

    def row(self, machine_id: str) -> int:
        """Where a machine stands in the columns; -1 where it is not known."""
        return self._inventory.row(machine_id)

    def id_of(self, row: int) -> str:
        return self._inventory.id_of(row)

    def rows_of_provider(self, provider: str) -> I64:
        fleet, rows = self._inventory.snapshot(), self._inventory.rows()
        theirs = np.array([pool[0] == provider for pool in fleet.classes.pools], np.bool_)
        return rows[theirs[fleet.classes.pool[fleet.cls[rows]]]] if len(theirs) else rows

    def ids_of_provider(self, provider: str) -> list[str]:
        return [self._inventory.id_of(row) for row in self.rows_of_provider(provider).tolist()]

    def bound(self, cluster: str) -> list[str]:
        """The machines bound to a cluster or stamped for it."""
        number = self.symbols.clusters.find(cluster)
        if number < 0:
            return []
        fleet = self._inventory.snapshot()
        mine = fleet.cluster == number
        if self.symbols.identity_count:
            whose = self.symbols.identity_column("cluster")
            mine |= (fleet.stamp >= 0) & (whose[fleet.stamp] == number)
        rows = np.flatnonzero(mine & (fleet.state > 0))
        return [fleet.ids[row] for row in rows.tolist()]

    def moving_since(self) -> Mapping[str, tuple[MachineState, int]]:
        """Machines in a transition: which, and since when in Unix nanoseconds."""
        return self._moving_since

    # -- one action per machine ------------------------------------------------------------------

    def busy(self, machine_id: str) -> bool:
        return machine_id in self._busy

    def mark_busy(self, machine_id: str) -> bool:
        """Keep other actions off a machine; False when an action on it is already under way."""
        if machine_id in self._busy:
            return False
        self._busy.add(machine_id)
        return True

    def free(self, machine_id: str) -> RecordResult | None:
        """The action is over. What was listed meanwhile is looked at now."""
        self._busy.discard(machine_id)
        self._acted.pop(machine_id, None)
        self._acted[machine_id] = self._clock.monotonic()
        self._forget_old_ends()
        aside = self._aside.pop(machine_id, None)
        if aside is None:
            return None
        known = self.get(machine_id)
        if known is None or not ends_transition(known, aside):
            return None
        return self._put(known, merge(known, aside, self._clock.now()))

    # -- what providers say ----------------------------------------------------------------------

    def take(
        self, machine: Machine, sent_monotonic_s: float | None = None, *, own: bool = False
    ) -> RecordResult:
        """An observed, valid record, in answer to a request sent at `sent_monotonic_s`.

        `own` is the answer to the action that is under way on the machine.
        """
        if machine.id in self._busy and not own:
            self._aside[machine.id] = machine
            return RecordResult(RecordEffect.ASIDE)
        if self._deciding and self._brings_a_name(machine):
            self._waiting.append(machine)
            return RecordResult(RecordEffect.ASIDE)
        known = self.get(machine.id)
        doubtful = (
            known is not None and not own and self._may_be_stale(machine.id, sent_monotonic_s)
        )
        if known is not None and doubtful and not ends_transition(known, machine):
            return RecordResult(RecordEffect.STALE)
        return self._put(known, merge(known, machine, self._clock.now()))

    def insert(self, machines: Sequence[Machine]) -> I64:
        """Machines that are new, all at once; their rows. InventoryError changes nothing."""
        rows = self._inventory.put_many(machines)
        # Sorts these few in among the others now; the next reader would have to wait for all.
        self._inventory.snapshot()
        self._written((None, machine) for machine in machines)
        return rows

    def vanish(self, machine_id: str) -> RecordResult:
        """A machine is gone; lost when it served a cluster."""
        known = self.get(machine_id)
        if known is None:
            return RecordResult(RecordEffect.SAME)
        self._inventory.remove(machine_id)
        self._busy.discard(machine_id)
        for memory in (self._aside, self._acted, self._moving_since):
            memory.pop(machine_id, None)
        self._backing_off.discard(machine_id)
        self._tell(known, None)
        return RecordResult(RecordEffect.CHANGED, lost=known.state in BOUND and bool(known.cluster))

    def deciding(self, is_deciding: bool) -> None:
        """A decision begins or ends; with its end comes what had to wait for it."""
        self._deciding = is_deciding
        waiting, self._waiting = self._waiting, []
        for machine in waiting:
            self.take(machine)

    def renumber(self, symbols: Symbols, numbers: I32) -> None:
        """Speak in other symbols from now on."""
        self.symbols = symbols
        self._inventory.renumber(symbols, numbers)

    # -- what the shard does ---------------------------------------------------------------------

    def start(
        self, machine_id: str, state: MachineState, cluster: str = "", stamp: Stamp | None = None
    ) -> Machine:
        """A move the shard causes; refused when the lifecycle does not know it."""
        before = self._known(machine_id)
        check_move(before.state, state)
        after = before.but(state=state, idle_since_ns=0)
        if cluster:
            after = after.but(cluster=cluster)
        if stamp is not None:
            after = after.but(stamp=stamp)
        if state is S.DELETING:
            after = after.but(stamp=None)
        if state is S.DRAINING and before.leaving is None:
            after = after.but(leaving=Departure(None, self._clock.now()))
        return self._change(before, after)

    def begin(self, orders: Iterable[Order]) -> None:
        """Write what is about to be done, so that the next cycle counts it."""
        changes, now = [], self._clock.now()
        for order in orders:
            before = self.get(order.machine)
            if before is not None:
                changes.append((before, begun(before, order, now)))
        self._inventory.put_many([after for _, after in changes])
        self._written(changes)

    def revert(self, machine_id: str) -> Machine | None:
        """What was started did not happen: back to where it was, without a stamp."""
        before = self.get(machine_id)
        if before is None or before.state not in _BACK:
            return before
        state = _BACK[before.state]
        idle = self._clock.now() if state is S.IDLE else 0
        after = before.but(state=state, idle_since_ns=idle, leaving=None)
        if state is not S.CONFIGURED:
            after = after.but(cluster="", stamp=None)
        return self._change(before, after)

    def leave(self, machine_id: str, for_stamp: Stamp | None, final: bool = False) -> Machine:
        """A machine is in its grace, for a stamp or for none."""
        before = self._known(machine_id)
        leaving = Departure(for_stamp, self._clock.now(), final)
        return self._change(before, before.but(leaving=leaving))

    def stay(self, machine_id: str) -> Machine:
        before = self._known(machine_id)
        return self._change(before, before.but(leaving=None))

    def stamp(self, machine_id: str, stamp: Stamp | None) -> Machine:
        """Re-stamp the machine; None clears the stamp."""
        before = self._known(machine_id)
        return self._change(before, before.but(stamp=stamp))

    def exclude(self, machine_id: str, excluded: bool) -> Machine:
        """A person keeps a machine out of every decision, or lets it in again."""
        before = self._known(machine_id)
        return self._change(before, before.but(excluded=excluded))

    def reserve(self, machine_id: str, reserved: bool) -> Machine:
        """Keep a machine for another shard, or end that."""
        before = self._known(machine_id)
        return self._change(before, before.but(reserved=reserved))

    def back_off(self, machine_ids: Collection[str]) -> None:
        """Exactly these wait after a failed action; those of earlier calls wait no longer."""
        for ids, waits in (
            (self._backing_off.difference(machine_ids), False),
            (set(machine_ids) - self._backing_off, True),
        ):
            rows = [row for m in sorted(ids) if (row := self._inventory.row(m)) >= 0]
            self._inventory.set_backing_off(np.array(rows, np.int64), waits)
        self._backing_off = {m for m in machine_ids if m in self._inventory}

    def complete_stamps(self, shapes: Mapping[tuple[str, str], str]) -> int:
        """Give stamps without a shape the one of their (cluster, fingerprint); how many.

        Records written by a release that did not write shapes lack them until the demand is heard.
        """
        fleet = self._inventory.snapshot()
        changed, self.shapeless = 0, False
        for identity in np.unique(fleet.stamp[fleet.stamp >= 0]).tolist():
            stamp = self.symbols.stamp(identity, 0)
            shape = shapes.get((stamp.cluster, stamp.fingerprint), "")
            self.shapeless |= not stamp.shape and not shape
            if stamp.shape or not shape:
                continue
            rows = np.flatnonzero((fleet.stamp == identity) & (fleet.state > 0))
            number = self.symbols.identity(replace(stamp, shape=shape))
            self._inventory.stamp(rows, number, fleet.sequence[rows])
            changed += len(rows)
        return changed

    def moved(self, clock: ClockSet) -> None:
        """With a clock that was set: nothing is idle, or not Ready, for longer or less for it."""
        fleet = self._inventory.snapshot()
        rows = np.flatnonzero((fleet.state > 0) & (fleet.idle_since > 0))
        self._inventory.set_idle_since(rows, clock.moved(fleet.idle_since[rows]))
        late = np.array(list(fleet.not_ready_since), np.int64)
        since = np.array(list(fleet.not_ready_since.values()), np.int64)
        self._inventory.set_not_ready(late, clock.moved(since))

    def stamp_rows(self, rows: I64, identities: I32, sequences: I64) -> None:
        """Stamp the machines of these rows; listeners do not hear of it."""
        self._inventory.stamp(rows, identities, sequences)

    def observe_nodes(
        self, marks: tuple[I64, Bools], pods: tuple[I64, I64], not_ready: tuple[I64, I64]
    ) -> None:
        """Write what clusters report of nodes, each as rows and values.

        Whether they must not be disturbed; how many pods run, -1 for not known; since when they
        are not Ready, 0 for Ready.
        """
        self._inventory.set_do_not_disrupt(*marks)
        self._inventory.set_pods(*pods)
        self._inventory.set_not_ready(*not_ready)

    def announce(self, machine_id: str) -> None:
        """Tell listeners of a machine whose node got a name; its columns stay as they are."""
        machine = self.get(machine_id)
        if machine is not None:
            self._tell(machine, machine)

    def _written(self, changes: Iterable[tuple[Machine | None, Machine | None]]) -> None:
        """Tell listeners of changes that were written to the columns in bulk."""
        for before, after in changes:
            self._note(before, after)
            self._tell(before, after)

    # -- the same for all ------------------------------------------------------------------------

    def _known(self, machine_id: str) -> Machine:
        machine = self.get(machine_id)
        if machine is None:
            raise UnknownMachineError(f"machine {machine_id!r} is not known to this shard")
        return machine

    def _change(self, before: Machine, after: Machine) -> Machine:
        if after != before:
            self._inventory.change(before, after)
            self._note(before, after)
            self._tell(before, after)
        return after

    def _put(self, known: Machine | None, merged: MergeResult) -> RecordResult:
        if not merged.changed:
            return RecordResult(RecordEffect.SAME)
        if known is None:
            self._inventory.put(merged.machine)
        else:
            self._inventory.change(known, merged.machine)
        self._note(known, merged.machine)
        self._tell(known, merged.machine)
        return RecordResult(
            RecordEffect.NEW if known is None else RecordEffect.CHANGED,
            merged.jumped,
            merged.lost,
            merged.freed,
            merged.delivered,
        )

    def _note(self, before: Machine | None, after: Machine | None) -> None:
        if after is None:
            return
        self.shapeless |= after.stamp is not None and not after.stamp.shape
        if before is not None and before.state is after.state:
            return
        if after.state in _BACK:
            self._moving_since[after.id] = (after.state, self._clock.now())
        else:
            self._moving_since.pop(after.id, None)

    def _tell(self, before: Machine | None, after: Machine | None) -> None:
        for listener in self.on_change:
            listener(before, after)

    def _may_be_stale(self, machine_id: str, sent_monotonic_s: float | None) -> bool:
        return (
            sent_monotonic_s is not None
            and self._acted.get(machine_id, sent_monotonic_s) > sent_monotonic_s
        )

    def _brings_a_name(self, machine: Machine) -> bool:
        """Whether taking a record would make the symbols or the labels' values grow."""
        known = self.get(machine.id)
        symbols = self.symbols
        names = (*machine.resources, *(machine.allocatable or ()))
        return (
            known is None
            or dict(known.labels) != dict(machine.labels)
            or (bool(machine.cluster) and symbols.clusters.find(machine.cluster) < 0)
            or (machine.stamp is not None and not symbols.knows(machine.stamp))
            or any(symbols.resources.find(name) < 0 for name in names)
        )

    def _forget_old_ends(self) -> None:
        oldest = self._clock.monotonic() - _ACTED_KEPT
        while self._acted:
            first = next(iter(self._acted))
            if self._acted[first] >= oldest:
                return
            del self._acted[first]


class UnknownMachineError(LookupError):
    """No machine has that id here."""
