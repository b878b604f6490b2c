"""The store over etcd: leads by election, writes under guard, reads what a majority has.

A load takes everything at one revision of etcd, page by page, so it sees no half of a commit.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from bigfleet.coordinator.store.call_metrics import StoreCallMeter
from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import (
    DeposedError,
    StoreError,
    StoreLockedError,
    StoreNotEmptyError,
    StoreSettingsError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.etcd.batches import PendingCommit, changes_in, overlaid
from bigfleet.coordinator.store.etcd.compaction import compact_while
from bigfleet.coordinator.store.etcd.connection.address import EtcdAddress
from bigfleet.coordinator.store.etcd.connection.faults import CompactedError
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.election import Election, LeaderLease
from bigfleet.coordinator.store.etcd.guarded_writer import GuardedWriter
from bigfleet.coordinator.store.etcd.keys import (
    Keys,
    LeaderRecord,
    end_of,
    entries,
    get,
    number_of,
    put,
    transaction,
)
from bigfleet.coordinator.store.etcd.leader_watch import LeaderWatch
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.interface import (
    Leader,
    Leadership,
    LoadedRows,
    RestoreScope,
    RowKey,
    Snapshot,
    StoreCounts,
    StoredRow,
)
from bigfleet.coordinator.store.leaders import Leaders
from bigfleet.coordinator.store.snapshots.documents import document_of, encode
from bigfleet.observe.process import Clock, Offload
from bigfleet.wire.errors import TlsFilesError

PAGE_ROWS: Final = 5_000
OPEN_SECONDS: Final = 3.0
LOAD_TRIES: Final = 3
"""A load is begun again when what it reads is compacted meanwhile."""
_SAFE: Final = (3, 5, 3)

_log = logging.getLogger(__name__)


class EtcdStore:
    """See `interface.Store` and `interface.Restorable`."""

    def __init__(
        self,
        address: EtcdAddress,
        replica: str,
        clock: Clock,
        offload: Offload,
        counts: StoreCounts,
    ) -> None:
        self._address = address
        self._replica = replica
        self._clock = clock
        self._offload = offload
        self._counting = StoreCallMeter(counts, clock)
        self._keys = Keys(address.prefix)
        self._leaders = Leaders()
        self._session: _Session | None = None

    async def open(self) -> None:
        """Connect to a member, and follow who leads."""
        if self._session is not None:
            return
        try:
            members = EtcdMembers(self._address, self._clock, self._offload, self._counting)
        except TlsFilesError as error:
            raise StoreSettingsError(f"the connection to etcd: {error}") from error
        try:
            await _look(members, self._keys)
        except BaseException:
            await members.close()
            raise
        self._session = _Session(members, self._keys, self._clock, self._leaders, self._replica)

    async def campaign(self, address: str) -> Leadership:
        """Wait until this replica leads."""
        return await self._opened().campaign(address)

    async def resign(self, leadership: Leadership) -> None:
        """Let another replica lead at once."""
        held = self._session.election.held_by(leadership) if self._session is not None else None
        leadership.lost.set()
        if held is not None and self._session is not None:
            await self._session.election.resign(held)

    async def load(self) -> LoadedRows:
        """All rows, at one revision."""
        members = self._opened().members
        for _ in range(LOAD_TRIES):
            with suppress(CompactedError):
                return await self._load_once(members)
        raise StoreUnavailableError("etcd is compacted faster than it can be read; load again")

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        """Write all of it in one transaction, or none."""
        session = self._opened()
        held = session.election.held_by(leadership)
        if held is None:
            leadership.lost.set()
            raise DeposedError(f"term {leadership.term} is over; campaign again")
        changes = changes_of(puts, deletes)
        try:
            return await session.writing.commit(changes, expected_revision, held.create_revision)
        except DeposedError:
            session.election.lose(held)
            raise

    def leader(self) -> Leader | None:
        """Who leads, as last seen."""
        return self._leaders.current

    def watch(self) -> AsyncIterator[Leader | None]:
        """Who leads, then every change."""
        return self._leaders.changes()

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        """A document of everything."""
        if not leadership.holds():
            raise DeposedError(f"term {leadership.term} is over; campaign again")
        taken = document_of(await self.load(), leadership.term, self._clock.now())
        return await self._offload(lambda: encode(taken))

    async def replace(
        self, rows: Sequence[StoredRow], term: int, revision: int, over: RestoreScope
    ) -> None:
        """Make these the only rows, in one step. Revisions are etcd's own, whatever was before."""
        session = self._opened()
        keys = self._keys
        look = transaction((), [get(keys.leader), get(keys.head), get(keys.base)])
        found = await session.members.call("get", lambda member: member.kv.Txn, look)
        leader, head, base = entries(found)
        if leader is not None:
            raise _led(f"the coordinator at {LeaderRecord.of(leader).address} leads")
        present = len((await self.load()).rows)
        if present and over is RestoreScope.NOTHING:
            raise StoreNotEmptyError(
                f"etcd holds {present} rows below {keys.prefix.decode()}; --force replaces them. "
                "Nothing was changed"
            )
        raised = put(keys.base, b"%d" % max(number_of(base), term))
        try:
            await session.writing.commit_batch(
                PendingCommit(session.writing.new_name(), wipe=True),
                changes_of(rows, ()),
                head.mod_revision if head is not None else 0,
                _NO_LEADER,
                besides=[raised],
            )
        except DeposedError as error:
            raise _led("a coordinator began to lead") from error

    async def close(self) -> None:
        """Let go of everything, leadership included."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        self._leaders.show(None)

    async def _load_once(self, members: EtcdMembers) -> LoadedRows:
        keys = self._keys
        rows: list[StoredRow] = []
        parts: dict[bytes, bytes] = {}
        head: kv_pb2.KeyValue | None = None
        batch: PendingCommit | None = None
        async for entry in self._everything(members):
            if entry.key.startswith(keys.rows):
                rows.append(keys.row_at(entry))
            elif entry.key.startswith(keys.batches):
                parts[entry.key] = entry.value
            elif entry.key == keys.head:
                head = entry
            elif entry.key == keys.pending:
                batch = PendingCommit.of(entry)
        if batch is not None:
            ours = keys.parts(batch.commit)
            changes = changes_in([part for key, part in parts.items() if key.startswith(ours)])
            rows = overlaid(rows, batch, changes)
        return LoadedRows(rows, head.mod_revision if head is not None else 0)

    async def _everything(self, members: EtcdMembers) -> AsyncIterator[kv_pb2.KeyValue]:
        """All that is below the prefix at one revision, in the order of the keys.

        Read by ranges: a full etcd refuses transactions, even those that only read.
        """
        start = self._keys.prefix
        revision = 0
        while True:
            request = pb.RangeRequest(
                key=start,
                range_end=end_of(self._keys.prefix),
                limit=PAGE_ROWS,
                revision=revision,
            )
            page = await members.call("range", lambda member: member.kv.Range, request)
            for entry in page.kvs:
                yield entry
            if not page.more:
                return
            revision = revision or page.header.revision
            start = page.kvs[-1].key + b"\0"

    def _opened(self) -> _Session:
        if self._session is None:
            raise StoreUnavailableError("the store in etcd is not open")
        return self._session


_NO_LEADER: Final = 0
"""Instead of the revision a leader was elected at: no replica may lead."""


class _Session:
    """What lives from `open` to `close`."""

    def __init__(
        self, members: EtcdMembers, keys: Keys, clock: Clock, leaders: Leaders, replica: str
    ) -> None:
        name = secrets.token_hex(8)
        self.members = members
        self.election = Election(members, keys, clock, leaders, replica, name)
        self.writing = GuardedWriter(members, keys, name)
        self._keys = keys
        self._compacting: asyncio.Task[None] | None = None
        following = LeaderWatch(members, keys, leaders, self.election, name)
        self._following = asyncio.ensure_future(following.run())

    async def campaign(self, address: str) -> Leadership:
        """Lead, and look after etcd while leading."""
        held: LeaderLease = await self.election.campaign(address)
        await _ended(self._compacting)
        self._compacting = asyncio.ensure_future(
            compact_while(held.leadership, self.members, self._keys)
        )
        return held.leadership

    async def close(self) -> None:
        """Resign and let go."""
        await _ended(self._following)
        await self.election.close()
        await _ended(self._compacting)
        await self.members.close()


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _led(why: str) -> StoreError:
    return StoreLockedError(
        f"{why}: a restore needs all coordinators of this store stopped. Nothing was changed"
    )


async def _look(members: EtcdMembers, keys: Keys) -> None:
    """Whether a member answers and lets us read, and what it says of itself."""
    request = pb.RangeRequest(key=keys.leader, count_only=True)
    await members.call("get", lambda member: member.kv.Range, request, OPEN_SECONDS)
    # From 3.6 on only root may ask for it; nothing depends on the answer.
    with suppress(StoreError):
        _tell(
            await members.call(
                "get",
                lambda member: member.maintenance.Status,
                pb.StatusRequest(),
                OPEN_SECONDS,
            )
        )


def _tell(status: pb.StatusResponse) -> None:
    for alarm in status.errors:
        _log.warning("etcd raises an alarm: %s", alarm)
    numbers = tuple(int(part) for part in status.version.split("-")[0].split(".") if part.isdigit())
    if numbers < _SAFE:
        _log.warning(
            "etcd %s can lose writes in a crash: upgrade it to 3.5.3 or newer", status.version
        )
