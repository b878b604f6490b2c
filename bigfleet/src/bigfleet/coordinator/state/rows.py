"""Changes and tables as rows of a store: keys as one text, values as JSON.

A key of several parts is percent-encoded and joined by slashes, so that any label can be one. A row
of a table this release does not know is an error: an older release must not lose what a newer one
wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import msgspec

from bigfleet.coordinator.state.changes import REVISION, SINCE, Changes, Key, Table, Value
from bigfleet.coordinator.state.errors import CorruptRowError
from bigfleet.coordinator.state.tables import FleetState
from bigfleet.coordinator.state.values import ClusterBinding, Move, ProviderEntry, ShardEntry
from bigfleet.coordinator.store.interface import RowKey, StoredRow

_TYPES: Final[Mapping[str, Any]] = {
    "shards": ShardEntry,
    "clusters": ClusterBinding,
    "domains": str,
    "quotas": dict[str, int],
    "providers": ProviderEntry,
    "moves": Move,
    "meta": int,
}
_DECODERS: Final = {table: msgspec.json.Decoder(kind) for table, kind in _TYPES.items()}
_PAIRS: Final = frozenset({"domains", "quotas"})
_encode = msgspec.json.Encoder(order="deterministic").encode


def rows_of(changes: Changes) -> tuple[list[StoredRow], list[RowKey]]:
    """What a store puts, and what it deletes."""
    puts = [StoredRow(put.table, key_text(put.key), _encode(put.value)) for put in changes.puts]
    deletes = [RowKey(one.table, key_text(one.key)) for one in changes.deletions]
    return puts, deletes


def state_of(rows: Iterable[StoredRow]) -> FleetState:
    """The tables that these rows are."""
    state = FleetState()
    for row in rows:
        table, key, value = _read(row)
        state.put(table, key, value)
    return state


def all_rows(state: FleetState) -> Iterator[StoredRow]:
    """Every row there is, table by table, sorted."""
    tables: Mapping[str, Mapping[Any, Value]] = {
        "shards": state.shards,
        "clusters": state.clusters,
        "domains": state.domains,
        "quotas": state.quotas,
        "providers": state.providers,
        "moves": state.moves,
        "meta": _meta(state),
    }
    for table, entries in tables.items():
        for key in sorted(entries):
            yield StoredRow(table, key_text(key), _encode(entries[key]))


def _meta(state: FleetState) -> dict[str, int]:
    numbers = {f"{SINCE}{key}": since for key, since in state.key_since.items()}
    return {**numbers, REVISION: state.revision} if state.revision else numbers


def key_text(key: Key) -> str:
    parts = (key,) if isinstance(key, str) else key
    return "/".join(quote(part, safe="") for part in parts)


def _read(row: StoredRow) -> tuple[Table, Key, Value]:
    decoder = _DECODERS.get(row.table)
    if decoder is None:
        raise CorruptRowError(
            f"table {row.table!r} is unknown: a newer release wrote it; use that release"
        )
    parts = tuple(unquote(part) for part in row.key.split("/"))
    if len(parts) != (2 if row.table in _PAIRS else 1):
        raise CorruptRowError(f"key {row.key!r} of table {row.table!r} cannot be read")
    try:
        value = cast("Value", decoder.decode(row.value))
    except msgspec.MsgspecError as error:
        raise CorruptRowError(
            f"row {row.key!r} of table {row.table!r} cannot be read ({error}): restore a snapshot"
        ) from error
    key: Key = parts[0] if len(parts) == 1 else (parts[0], parts[1])
    return cast("Table", row.table), key, value
