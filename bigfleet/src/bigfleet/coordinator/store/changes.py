"""What one commit does to the rows, the same for every engine: each row once, put or deleted.

A row that is put several times has the last value; one that is both put and deleted is put. A key
that no engine could keep, or a value too large for one of them, is refused before anything is sent,
so that rows always fit into the other engine too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bigfleet.coordinator.store.errors import StoreFullError, StoreSettingsError
from bigfleet.coordinator.store.interface import TABLES, RowKey, StoredRow

LARGEST_ROW_BYTES: Final = 512 * 1024
"""etcd takes requests of up to 1.5 MiB unless told otherwise."""
LONGEST_KEY: Final = 4096

Changes = Mapping[RowKey, bytes | None]
"""Every row that changes, with its new value; None when it goes."""

_TABLES: Final = frozenset(TABLES)


def changes_of(puts: Iterable[StoredRow], deletes: Iterable[RowKey]) -> dict[RowKey, bytes | None]:
    """Every row once, in the order of their keys."""
    found: dict[RowKey, bytes | None] = dict.fromkeys(deletes)
    for row in puts:
        found[RowKey(row.table, row.key)] = row.value
    for key, value in found.items():
        _check(key, value)
    return dict(sorted(found.items()))


def _check(key: RowKey, value: bytes | None) -> None:
    if key.table not in _TABLES:
        raise StoreSettingsError(f"no table {key.table!r}; there are {', '.join(TABLES)}")
    text = key.key
    if not text or len(text) > LONGEST_KEY or not all("!" <= letter <= "~" for letter in text):
        raise StoreSettingsError(
            f"{key.table}: key {text[:80]!r} is empty, longer than {LONGEST_KEY} or not printable "
            "ASCII; percent-encode its parts"
        )
    if value is not None and len(value) > LARGEST_ROW_BYTES:
        raise StoreFullError(
            f"{key.table}/{text}: {len(value)} bytes, at most {LARGEST_ROW_BYTES} in one row; "
            "nothing was written"
        )
