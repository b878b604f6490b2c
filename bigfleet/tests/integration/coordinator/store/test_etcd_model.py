"""Any sequence of commits leaves in etcd what a plain dictionary would hold, conflicts included."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigfleet.coordinator.store.errors import DeposedError, StoreConflictError
from bigfleet.coordinator.store.interface import RowKey
from etcd_members import Cluster
from store_commits import Commit, commits
from storing import engine_at, leading, opened, rows_in

pytestmark = pytest.mark.usefixtures("long_lease")


@settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches=st.lists(commits(), max_size=8))
async def test_etcd_holds_what_a_dictionary_would(
    one_member: Cluster, tmp_path: Path, batches: list[Commit]
) -> None:
    prefix = f"model-{secrets.token_hex(6)}"
    rows: dict[RowKey, bytes] = {}
    revision = 0
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        former = await leading(store)
        await store.resign(former)
        leadership = await leading(store)
        for commit in batches:
            if commit.restart:
                former = leadership
                await store.close()
                await store.open()
                leadership = await leading(store)
                assert leadership.term > former.term
            used = former if commit.terms_late else leadership
            try:
                after = await store.commit(
                    commit.puts, commit.deletes, revision + commit.off_by, used
                )
            except DeposedError:
                assert commit.terms_late
            except StoreConflictError:
                assert commit.off_by
            else:
                assert not commit.off_by
                assert not commit.terms_late
                assert after > revision
                revision = after
                for key in commit.deletes:
                    rows.pop(key, None)
                rows |= {RowKey(row.table, row.key): row.value for row in commit.puts}
            assert await rows_in(store) == rows
            assert (await store.load()).revision == revision
