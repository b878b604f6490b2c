"""From offerings to slots: which machines appear, change or leave.

New slots appear, surplus ones leave once they are SPECULATIVE, and hosts are never touched by it: a
machine that lost its offering while it has a host stays as an extra one until it is given back.
"""

from collections.abc import Mapping
from dataclasses import replace

from bigfleet_providerkit.backend.state.ledger import Edit, Ledger
from bigfleet_providerkit.catalogue.offering_catalogue import settled
from bigfleet_providerkit.machines.inventory import Inventory
from bigfleet_providerkit.machines.record import Record, Shape
from bigfleet_providerkit.machines.state import State


def changed_slot(record: Record, shape: Shape | None) -> Record | None:
    """A record as its offering wants it; None when it leaves, itself when nothing changes."""
    if shape is None:
        if record.state is State.SPECULATIVE:
            return None
        return record if record.extra else replace(record, extra=True)
    wanted = settled(record.shape, shape, has_host=bool(record.host))
    if wanted is record.shape and not record.extra:
        return record
    return replace(record, shape=wanted, extra=False)


def slot_changes(
    inventory: Inventory, shapes: Mapping[str, Shape], label: str
) -> tuple[list[Record], list[str]]:
    """Records to write and machines to remove, so that the inventory fits the offerings."""
    put, remove = [], []
    for record in inventory:
        wanted = changed_slot(record, shapes.get(record.id))
        if wanted is None:
            remove.append(record.id)
        elif wanted is not record:
            put.append(wanted)
    put += [Record(slot, label, shape) for slot, shape in shapes.items() if slot not in inventory]
    return put, remove


async def apply_offerings(ledger: Ledger, shapes: Mapping[str, Shape], label: str) -> int:
    """The same while the provider serves: one machine at a time, each looked at again."""
    put, remove = slot_changes(ledger.inventory, shapes, label)
    for machine in [*(record.id for record in put), *remove]:
        async with ledger.hold(machine):
            record = ledger.inventory.get(machine)
            shape = shapes.get(machine)
            if record is None:
                if shape is not None:
                    await ledger.commit(Edit(record=Record(machine, label, shape)))
                continue
            wanted = changed_slot(record, shape)
            if wanted is None:
                await ledger.commit(Edit(remove=machine))
            elif wanted is not record:
                await ledger.commit(Edit(record=wanted))
    return len(put) + len(remove)
