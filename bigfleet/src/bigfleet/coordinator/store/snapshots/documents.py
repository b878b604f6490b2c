"""Snapshots as documents: one JSON text with every row, the term and the revision.

The same for every engine, and readable by a person:

    {"format": ..., "version": 1, "term": 7, "revision": 4711, "taken_at_unix_nanos": ...,
     "sha256": ..., "tables": {"shards": {"a": {...}}, ...}}

The checksum is that of the tables alone, written without spaces in the order of the document, so a
document that a person indented is still itself. Values come back as compact JSON of the same
content. Where documents come from and go to is left to `exporter` and to the caller of `restore`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import SnapshotError, SnapshotMissingError, StoreError
from bigfleet.coordinator.store.interface import (
    TABLES,
    LoadedRows,
    Restorable,
    RestoreScope,
    Snapshot,
    StoredRow,
)

FORMAT: Final = "bigfleet-coordinator-snapshot"
VERSION: Final = 1
_MOST: Final = 2**62
"""Of a number in a document. Every leadership and every write counts on from there, in 64 bits."""
_REMEDY: Final = (
    "nothing was changed; take another copy from the export directory, "
    "or a new one with `bigfleetctl snapshot save`"
)


@dataclass(frozen=True, slots=True)
class Document:
    """Everything a store knows."""

    rows: tuple[StoredRow, ...]
    term: int
    """The newest leadership when it was taken. A restored store starts above it."""
    revision: int
    taken_at: int
    """Unix nanoseconds."""


def document_of(loaded: LoadedRows, term: int, now: int) -> Document:
    """What was read from a store under a leadership, as a document."""
    if not loaded.revision:
        raise SnapshotMissingError("nothing was written yet; there is nothing to save")
    return Document(tuple(loaded.rows), term, loaded.revision, now)


def encode(document: Document) -> Snapshot:
    """The document's text, and what it is in a few words."""
    tables = _compact(_tables(document.rows))
    what = {
        "format": FORMAT,
        "version": VERSION,
        "term": document.term,
        "revision": document.revision,
        "taken_at_unix_nanos": document.taken_at,
        "sha256": hashlib.sha256(tables).hexdigest(),
    }
    data = _compact(what)[:-1] + b',"tables":' + tables + b"}\n"
    return Snapshot(_compact(what | {"rows": len(document.rows), "bytes": len(data)}), data)


def decode(data: bytes) -> Document:
    """The document of a text. SnapshotError says what is wrong with it and what to do."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(
            f"the snapshot is cut short or no JSON ({error}; {len(data)} bytes): {_REMEDY}"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SnapshotError(
            f"this is not a snapshot of a coordinator (no format {FORMAT}): {_REMEDY}"
        )
    if document.get("version") != VERSION:
        raise SnapshotError(
            f"the snapshot has version {document.get('version')!r}, this release reads {VERSION}: "
            "restore it with the release that wrote it; nothing was changed"
        )
    tables = document.get("tables")
    if not isinstance(tables, dict) or document.get("sha256") != _sha256(tables):
        raise SnapshotError(f"the snapshot's rows are not those of its checksum: {_REMEDY}")
    return Document(
        _rows(tables),
        term=_number(document, "term"),
        revision=_number(document, "revision"),
        taken_at=_number(document, "taken_at_unix_nanos"),
    )


def _tables(rows: Iterable[StoredRow]) -> dict[str, dict[str, object]]:
    tables: dict[str, dict[str, object]] = {table: {} for table in TABLES}
    for row in sorted(rows, key=lambda row: (row.table, row.key)):
        try:
            tables[row.table][row.key] = json.loads(row.value)
        except (KeyError, ValueError) as error:
            raise SnapshotError(
                f"row {row.table}/{row.key} cannot be written into a snapshot ({error}): its value "
                "is not JSON; restore the last good export"
            ) from None
    return tables


def _rows(tables: Mapping[str, object]) -> tuple[StoredRow, ...]:
    rows: list[StoredRow] = []
    for table, entries in tables.items():
        if not isinstance(entries, dict):
            raise SnapshotError(f"table {table!r} of the snapshot has no rows: {_REMEDY}")
        rows += (StoredRow(table, key, _compact(value)) for key, value in entries.items())
    try:
        changes_of(rows, ())
    except StoreError as error:
        raise SnapshotError(f"the snapshot cannot be restored: {error}") from None
    return tuple(rows)


def _number(document: Mapping[str, object], name: str) -> int:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise SnapshotError(
            f"the snapshot's {name} is {value!r}, not a number from 0 to {_MOST}: {_REMEDY}"
        )
    return value


def _sha256(tables: Mapping[str, object]) -> str:
    try:
        return hashlib.sha256(_compact(tables)).hexdigest()
    except SnapshotError:
        return ""


def _compact(value: object) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError as error:
        raise SnapshotError(f"a value cannot be written as JSON: {error}") from None


async def restore(
    store: Restorable, data: bytes, over: RestoreScope = RestoreScope.NOTHING
) -> Document:
    """Put a document into a store that no replica leads; what was restored.

    It is read and checked whole before the store is touched, and an engine exchanges all rows in
    one step. The term never goes backwards: the next leadership is above that of the snapshot and
    above every one that the store has seen.

    SnapshotError: the document is unusable. StoreNotEmptyError: there are rows already.
    StoreLockedError: a coordinator leads. In each case nothing was changed.
    """
    document = decode(data)
    await store.replace(document.rows, document.term, document.revision, over)
    return document
