"""How changes reach the tables: one statement per transaction.

Every step of a statement hands the interpreter's lock to the event loop and waits to get it back,
so a transaction of many statements lasts as long as the loop is busy. Rows for all tables therefore
go into one view of this connection, and its triggers put each where it belongs: a single INSERT,
which SQLite commits by itself, while the loop works on. The number of rows of a statement is the
next of a short list, filled up by saying the last row again, so that all statements stay prepared.
"""

import bisect
import functools
import sqlite3

from bigfleet_providerkit.store.interface import TABLES, Changes
from bigfleet_providerkit.store.schema import checksum

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_PUT = {table: 2 * number for number, table in enumerate(TABLES)}
_DROP = {table: 2 * number + 1 for number, table in enumerate(TABLES)}
_WIDTH = 4
_Field = bytes | int | None


def prepare_writing(connection: sqlite3.Connection) -> None:
    """Give a connection the view that takes rows for all tables; the file knows nothing of it."""
    connection.execute(
        "CREATE TEMP VIEW inbox AS SELECT 0 AS place, 0 AS key, 0 AS value, 0 AS sum"
    )
    for table in TABLES:
        steps = {
            _PUT[table]: f"INSERT OR REPLACE INTO {table} VALUES (NEW.key, NEW.value, NEW.sum)",
            _DROP[table]: f"DELETE FROM {table} WHERE key = NEW.key",
        }
        for place, step in steps.items():
            connection.execute(
                f"CREATE TEMP TRIGGER inbox_{place} INSTEAD OF INSERT ON inbox"
                f" WHEN NEW.place = {place} BEGIN {step}; END"
            )


def write_changes(connection: sqlite3.Connection, changes: Changes) -> None:
    """One transaction."""
    fields: list[_Field] = []
    for (table, key), value in changes.items():
        if value is None:
            fields += (_DROP[table], key, None, None)
        else:
            fields += (_PUT[table], key, value, checksum(key, value))
    most = SIZES[-1] * _WIDTH
    if len(fields) <= most:
        _insert(connection, fields)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for position in range(0, len(fields), most):
            _insert(connection, fields[position : position + most])
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, fields: list[_Field]) -> None:
    rows = len(fields) // _WIDTH
    if rows:
        size = SIZES[bisect.bisect_left(SIZES, rows)]
        connection.execute(_statement(size), fields + fields[-_WIDTH:] * (size - rows))


@functools.cache
def _statement(size: int) -> str:
    return "INSERT INTO inbox VALUES " + ",".join(["(?,?,?,?)"] * size)
