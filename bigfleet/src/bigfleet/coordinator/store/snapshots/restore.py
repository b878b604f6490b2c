"""A snapshot back into a store that no replica leads: how to recover, and how to change the engine.

The document is read and checked whole before the store is touched, and an engine exchanges all rows
in one step, so a restore that fails leaves what was there. The term never goes backwards: the next
leadership is above that of the snapshot and above every one the store itself has seen.
"""

from __future__ import annotations

from bigfleet.coordinator.store.interface import Restorable, RestoreScope
from bigfleet.coordinator.store.snapshots.documents import Document, decode


async def restore(
    store: Restorable, data: bytes, over: RestoreScope = RestoreScope.NOTHING
) -> Document:
    """Put a document into an open store; what was restored.

    SnapshotError: the document is unusable. StoreNotEmptyError: there are rows already.
    StoreLockedError: a coordinator leads. In each case nothing was changed.
    """
    document = decode(data)
    await store.replace(document.rows, document.term, document.revision, over)
    return document
