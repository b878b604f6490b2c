"""Any sequence of commits leaves what a plain dictionary would hold, conflicts included."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import DeposedError, StoreConflictError
from bigfleet.coordinator.store.interface import RowKey
from bigfleet.coordinator.store.sqlite.file import SqliteFile
from store_commits import Commit, commits


@dataclass
class Model:
    """What the file should be."""

    rows: dict[RowKey, bytes]
    revision: int = 0

    def apply(self, commit: Commit) -> None:
        for key in commit.deletes:
            self.rows.pop(key, None)
        for row in commit.puts:
            self.rows[RowKey(row.table, row.key)] = row.value
        self.revision += 1


# Every commit is flushed to a real disk, so a quarter of the usual examples.
@settings(max_examples=settings().max_examples // 4)
@given(st.lists(commits(), max_size=8))
def test_a_file_holds_what_a_dictionary_would(batches: list[Commit]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = SqliteFile(Path(folder))
        model = Model({})
        term = file.new_term()
        for commit in batches:
            if commit.restart:
                file.close()
                file = SqliteFile(Path(folder))
                former, term = term, file.new_term()
                assert term == former + 1
            expected = model.revision + commit.off_by
            used = term - commit.terms_late
            changes = changes_of(commit.puts, commit.deletes)
            try:
                revision = file.commit(changes, expected, used)
            except DeposedError:
                assert commit.terms_late
            except StoreConflictError:
                assert commit.off_by
            else:
                assert not commit.off_by
                assert not commit.terms_late
                model.apply(commit)
                assert revision == model.revision
            loaded = file.load()
            assert {RowKey(row.table, row.key): row.value for row in loaded.rows} == model.rows
            assert loaded.revision == model.revision
        file.close()
