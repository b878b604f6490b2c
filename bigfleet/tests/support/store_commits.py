"""Commits drawn at random: few keys, so that they meet, and now and then one that must fail."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from bigfleet.coordinator.store.interface import TABLES, RowKey, StoredRow

KEYS = ("a", "b", "rack/r1", "rack/r%2F2", "~!")


@dataclass(frozen=True)
class Commit:
    """What a writer tries."""

    puts: tuple[StoredRow, ...]
    deletes: tuple[RowKey, ...]
    off_by: int
    """How far the revision it expects is from the true one."""
    terms_late: int
    """0: by the leader of now."""
    restart: bool
    """Whether the store is closed and opened before."""


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    """One commit."""
    tables = st.sampled_from(TABLES)
    keys = st.sampled_from(KEYS)
    values = st.integers(0, 9).map(lambda number: b'{"n":%d}' % number)
    return Commit(
        tuple(draw(st.lists(st.builds(StoredRow, tables, keys, values), max_size=4))),
        tuple(draw(st.lists(st.builds(RowKey, tables, keys), max_size=4))),
        draw(st.sampled_from((0, 0, 0, 0, -1, 1))),
        draw(st.sampled_from((0, 0, 0, 0, 0, 1))),
        draw(st.sampled_from((False, False, False, True))),
    )
