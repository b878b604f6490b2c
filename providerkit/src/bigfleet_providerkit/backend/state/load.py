"""From the rows of a store to a ledger.

A store without machines is a fresh one: it gets its id here, and its machines from the offerings.
"""

import random
from dataclasses import dataclass

from bigfleet_providerkit.backend.state.ledger import LateOperation, Ledger, Work
from bigfleet_providerkit.machines.fence import FenceBook
from bigfleet_providerkit.machines.inventory import Inventory
from bigfleet_providerkit.machines.operations import OperationIds
from bigfleet_providerkit.machines.state import KINDS, Kind
from bigfleet_providerkit.store import rows
from bigfleet_providerkit.store.interface import Store, Tables


@dataclass(frozen=True, slots=True)
class LoadedState:
    """A ledger, whether its store was fresh, the hosts of a substrate in memory, and what Nodes
    reported, by the word of their type."""

    ledger: Ledger
    fresh: bool
    hosts: dict[str, bytes]
    reports: dict[str, dict[str, dict[str, str]]]


def load(store: Store, label: str, rng: random.Random) -> LoadedState:
    """Open a store and rebuild everything it knows."""
    tables = store.open(label)
    stored = tables["meta"].get(rows.META_KEY)
    meta = rows.MetaRow(rows.new_store_id(rng)) if stored is None else rows.read_meta(stored)
    if stored is None:
        store.prepare({("meta", rows.META_KEY): rows.pack(meta)})
    inventory = Inventory(meta.store_id, meta.revision)
    _load_machines(tables, inventory, label)
    fences = FenceBook()
    fences.load(
        (rows.read_mark(key, value) for key, value in tables["fences"].items()),
        (record.id for record in inventory),
    )
    ledger = Ledger(store, inventory, fences, OperationIds(meta.store_id, meta.counter))
    for key, value in tables["running"].items():
        row = rows.read_running(value)
        ledger.work[key.decode()] = Work(
            KINDS[row.kind], row.operation, row.started, row.deadline, row.grace, row.seed
        )
    for key, value in tables["late"].items():
        late = rows.read_late(value)
        ledger.late[key.decode()] = LateOperation(late.machine, late.since)
    for key, value in tables["notes"].items():
        ledger.notes[key.decode()] = rows.read_notes(value)
    hosts = {key.decode(): value for key, value in tables["hosts"].items()}
    reports = {
        key.removeprefix(rows.REPORTS_KEY).decode(): rows.read_reports(value)
        for key, value in tables["meta"].items()
        if key.startswith(rows.REPORTS_KEY)
    }
    return LoadedState(ledger, stored is None or not len(inventory), hosts, reports)


def _load_machines(tables: Tables, inventory: Inventory, label: str) -> None:
    operations: dict[str, dict[Kind, str]] = {}
    for key, value in tables["operations"].items():
        machine, kind = rows.read_operation(key)
        operations.setdefault(machine, {})[kind] = value.decode()
    records = [
        rows.read_machine(machine := key.decode(), label, value, operations.get(machine, {}))
        for key, value in tables["machines"].items()
    ]
    for record, revision in sorted(records, key=lambda found: found[1]):
        inventory.publish(record, revision)
