"""One statement per transaction leaves in the tables exactly what was said."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet_providerkit.store.interface import TABLES, Changes
from bigfleet_providerkit.store.schema import create_schema, prepare_schema, read_tables
from bigfleet_providerkit.store.writer import SIZES, prepare_writing, write_changes

KEYS = st.sampled_from([b"", b"a", b"a\0", b"\xff", b"k" * 300])
ROWS = st.tuples(st.sampled_from(TABLES), KEYS.map(lambda key: b"key-" + key))
STEPS = st.lists(st.dictionaries(ROWS, st.none() | st.binary(max_size=40)), max_size=12)
NOWHERE = Path("nowhere")


def a_connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_schema(connection)
    prepare_schema(connection, NOWHERE, "label")
    prepare_writing(connection)
    return connection


def shown(connection: sqlite3.Connection) -> dict[tuple[str, bytes], bytes]:
    tables = read_tables(connection, NOWHERE)
    rows = {(table, key): value for table in tables for key, value in tables[table].items()}
    return {row: value for row, value in rows.items() if row != ("meta", b"label")}


@given(STEPS)
def test_tables_are_what_a_dictionary_would_be(steps: list[Changes]) -> None:
    connection = a_connection()
    model: dict[tuple[str, bytes], bytes] = {}
    for changes in steps:
        write_changes(connection, changes)
        for row, value in changes.items():
            if value is None:
                model.pop(row, None)
            else:
                model[row] = value
    assert shown(connection) == model
    assert not connection.in_transaction
    connection.close()


@pytest.mark.parametrize("count", sorted({*SIZES, 5, 7, 511, 513, 1024, 1500}))
def test_every_number_of_rows_arrives(count: int) -> None:
    connection = a_connection()
    changes: Changes = {("machines", b"%d" % number): b"v" for number in range(count)}
    write_changes(connection, changes)
    assert shown(connection) == changes
    write_changes(connection, dict.fromkeys(changes))
    assert shown(connection) == {}
    connection.close()


@pytest.mark.parametrize("count", [10, 600])
def test_a_transaction_that_fails_leaves_nothing(count: int) -> None:
    connection = a_connection()
    write_changes(connection, {("late", b"kept"): b"1"})
    connection.execute(
        "CREATE TEMP TRIGGER no BEFORE INSERT ON notes BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
    changes: Changes = {("late", b"%d" % number): b"2" for number in range(count)}
    with pytest.raises(sqlite3.Error, match="no room"):
        write_changes(connection, {**changes, ("notes", b"n"): b"3"})
    assert shown(connection) == {("late", b"kept"): b"1"}
    assert not connection.in_transaction
    connection.close()
