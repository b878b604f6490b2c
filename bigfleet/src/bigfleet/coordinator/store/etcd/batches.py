"""Commits larger than one transaction of etcd, which takes 128 operations and 1.5 MiB.

The content is written in parts that no reader looks at, then decided by one small transaction that
writes `head` and `pending`. From then on it is committed: every load sees the rows as they will
be, and the rows follow in as many steps as it takes. Every step can be repeated, so a leader that
dies in between is continued by the next one before it writes anything of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bigfleet.coordinator.store.changes import Changes
from bigfleet.coordinator.store.errors import CorruptStoreError
from bigfleet.coordinator.store.etcd.keys import compact, fields_of
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.interface import RowKey, StoredRow

MOST_OPERATIONS: Final = 120
"""In one transaction; the rest of the 128 are the store's own."""
MOST_BYTES: Final = 1024 * 1024
PART_BYTES: Final = 768 * 1024


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit that is decided and not yet applied."""

    commit: str
    wipe: bool = False
    """Whether all other rows go: a restore."""
    mod_revision: int = 0

    @classmethod
    def of(cls, entry: kv_pb2.KeyValue) -> PendingCommit:
        """What an entry says."""
        fields = fields_of(entry)
        return cls(str(fields.get("commit")), fields.get("wipe") is True, entry.mod_revision)

    def value(self) -> bytes:
        """As it is written."""
        return compact({"commit": self.commit, "wipe": self.wipe})


def fits(changes: Changes) -> bool:
    """Whether changes fit into one transaction."""
    return len(changes) <= MOST_OPERATIONS and _bytes_of(changes) <= MOST_BYTES


def steps(changes: Changes) -> Iterator[dict[RowKey, bytes | None]]:
    """Changes in pieces that each fit into one transaction."""
    step: dict[RowKey, bytes | None] = {}
    size = 0
    for key, value in changes.items():
        more = _size_of(key, value)
        if step and (len(step) == MOST_OPERATIONS or size + more > MOST_BYTES):
            yield step
            step, size = {}, 0
        step[key] = value
        size += more
    if step:
        yield step


def parts_of(changes: Changes) -> list[bytes]:
    """The content of a batch in pieces that etcd takes."""
    content = json.dumps(
        [
            [key.table, key.key, None if value is None else value.decode()]
            for key, value in changes.items()
        ],
        separators=(",", ":"),
    ).encode()
    return [content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES)]


def changes_in(parts: Sequence[bytes]) -> dict[RowKey, bytes | None]:
    """What the parts of a batch say."""
    try:
        return {
            RowKey(table, key): None if value is None else value.encode()
            for table, key, value in json.loads(b"".join(parts))
        }
    except (ValueError, AttributeError) as error:
        raise CorruptStoreError(
            f"a large commit in etcd cannot be read ({error}); restore the last snapshot"
        ) from error


def overlaid(
    rows: Iterable[StoredRow], pending: PendingCommit, changes: Changes
) -> list[StoredRow]:
    """The rows as they will be."""
    stay = (
        [] if pending.wipe else [row for row in rows if RowKey(row.table, row.key) not in changes]
    )
    new = (
        StoredRow(key.table, key.key, value) for key, value in changes.items() if value is not None
    )
    return [*stay, *new]


def _bytes_of(changes: Changes) -> int:
    return sum(_size_of(key, value) for key, value in changes.items())


def _size_of(key: RowKey, value: bytes | None) -> int:
    return len(key.table) + len(key.key) + len(value or b"") + 64
