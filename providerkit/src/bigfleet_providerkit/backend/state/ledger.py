"""The one place where machines, marks and work change: in the store first, then in memory.

An `Edit` is what one step changes. The ledger gives it a revision, makes it durable, and publishes
it in the order of the commits, so a reader never sees what a crash could take back. Per machine one
edit is under way at a time: the next one waits for the machine's lock.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bigfleet_providerkit.backend.state.machine_locks import MachineLocks
from bigfleet_providerkit.errors import StoreUnavailable
from bigfleet_providerkit.machines.fence import FenceBook, Mark, Pair
from bigfleet_providerkit.machines.inventory import Inventory
from bigfleet_providerkit.machines.operations import OperationIds
from bigfleet_providerkit.machines.record import NO_OPERATIONS, Record
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.store import rows
from bigfleet_providerkit.store.interface import Changes, Store

Then = Callable[[StoreUnavailable | None], None]


@dataclass(frozen=True, slots=True)
class Work:
    """A transition in flight, as the store keeps it; `seed` is that of a Create's host key."""

    kind: Kind
    operation: str
    started: float
    deadline: float
    grace: int = 0
    seed: bytes = b""


@dataclass(frozen=True, slots=True)
class LateOperation:
    """An operation whose host must go, should it appear."""

    machine: str
    since: float


@dataclass(slots=True)
class Edit:
    """What one step changes, all of it or nothing."""

    record: Record | None = None
    revision: int = 0
    remove: str = ""
    mark: tuple[Pair, Mark] | None = None
    work: Work | None = None
    work_ended: str = ""
    late: dict[str, LateOperation | None] = field(default_factory=dict)
    notes: dict[str, rows.NotesRow | None] = field(default_factory=dict)


class Ledger:
    """Machines, marks, operations and work, durable."""

    def __init__(
        self, store: Store, inventory: Inventory, fences: FenceBook, ids: OperationIds
    ) -> None:
        self.store = store
        self.inventory = inventory
        self.fences = fences
        self.ids = ids
        self.work: dict[str, Work] = {}
        self.late: dict[str, LateOperation] = {}
        self.notes: dict[str, rows.NotesRow] = {}
        self._revision = inventory.head
        self.on_trouble: Callable[[], None] = lambda: None
        self.locks = MachineLocks()
        self.hold = self.locks.hold

    def submit(self, edit: Edit, then: Then) -> None:
        """Make an edit durable and visible, then call back; no caller has to wait for it."""

        def done(error: StoreUnavailable | None) -> None:
            if error is None:
                self._publish(edit)
            else:
                self.on_trouble()
            then(error)

        self.store.submit(self._changes(edit), done)

    async def commit(self, edit: Edit) -> None:
        """Make an edit durable and visible. Hold the machine's lock, and do not be cancelled."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(error: StoreUnavailable | None) -> None:
            if committed.done():
                return
            if error is None:
                committed.set_result(None)
            else:
                committed.set_exception(error)

        self.submit(edit, then)
        await committed

    def seed(self, records: Iterable[Record], remove: Iterable[str] = ()) -> None:
        """Change many machines in one transaction, before anybody is served."""
        edits = [Edit(record=record) for record in records]
        edits += [Edit(remove=machine) for machine in remove]
        changes: Changes = {}
        for edit in edits:
            changes.update(self._changes(edit))
        if changes:
            self.store.prepare(changes)
        for edit in edits:
            self._publish(edit)

    def _changes(self, edit: Edit) -> Changes:
        changes: Changes = {}
        if edit.record is not None:
            self._revision += 1
            edit.revision = self._revision
            self._record_rows(edit.record, edit.revision, changes)
        if edit.remove:
            self._removal_rows(edit.remove, changes)
        if edit.mark is not None:
            pair, mark = edit.mark
            changes["fences", rows.key_of(*pair)] = rows.write_mark(mark)
            for surplus in self.fences.surplus():
                changes["fences", rows.key_of(*surplus)] = None
        if edit.work is not None and edit.record is not None:
            work = edit.work
            changes["running", rows.key_of(edit.record.id)] = rows.pack(
                rows.RunningRow(
                    work.kind.word,
                    work.operation,
                    work.started,
                    work.deadline,
                    work.grace,
                    work.seed,
                )
            )
        if edit.work_ended:
            changes["running", rows.key_of(edit.work_ended)] = None
        for operation, late in edit.late.items():
            row = None if late is None else rows.pack(rows.LateRow(late.machine, late.since))
            changes["late", rows.key_of(operation)] = row
        for machine, notes in edit.notes.items():
            changes["notes", rows.key_of(machine)] = None if notes is None else rows.pack(notes)
        changes["meta", rows.META_KEY] = rows.pack(
            rows.MetaRow(self.ids.store_id, self._revision, self.ids.counter)
        )
        return changes

    def _record_rows(self, record: Record, revision: int, changes: Changes) -> None:
        changes["machines", rows.key_of(record.id)] = rows.write_machine(record, revision)
        old = self.inventory.get(record.id)
        before = old.operations if old else NO_OPERATIONS
        if record.operations == before:
            return
        for kind, operation, stored in zip(Kind, record.operations, before, strict=True):
            if operation != stored:
                key = ("operations", rows.key_of(kind.word, record.id))
                changes[key] = operation.encode() if operation else None

    def _removal_rows(self, machine: str, changes: Changes) -> None:
        changes["machines", rows.key_of(machine)] = None
        changes["notes", rows.key_of(machine)] = None
        for kind in Kind:
            changes["operations", rows.key_of(kind.word, machine)] = None

    def _publish(self, edit: Edit) -> None:
        if edit.record is not None:
            if edit.record.id not in self.inventory:
                self.fences.machine_came(edit.record.id)
            self.inventory.publish(edit.record, edit.revision)
            if edit.work is not None:
                self.work[edit.record.id] = edit.work
        if edit.remove:
            self.inventory.remove(edit.remove)
            self.fences.machine_left(edit.remove)
            self.notes.pop(edit.remove, None)
        if edit.mark is not None:
            pair, mark = edit.mark
            self.fences.settle(pair, mark, exists=pair[1] in self.inventory)
        if edit.work_ended:
            self.work.pop(edit.work_ended, None)
        for operation, late in edit.late.items():
            if late is None:
                self.late.pop(operation, None)
            else:
                self.late[operation] = late
        for machine, notes in edit.notes.items():
            if notes is None:
                self.notes.pop(machine, None)
            else:
                self.notes[machine] = notes
