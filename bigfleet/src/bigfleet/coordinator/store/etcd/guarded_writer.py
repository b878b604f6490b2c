"""Guarded writes: transactions that pass only while a certain leader, or none, leads.

What happens to an attempt whose answer got lost is found out by the next one: every commit leaves
its own name in `head`. Only when another replica has written since is it unknown, and said so.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from dataclasses import replace

from bigfleet.coordinator.store.changes import Changes
from bigfleet.coordinator.store.errors import (
    DeposedError,
    StoreConflictError,
    StoreFullError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.etcd.batches import (
    PendingCommit,
    changes_in,
    fits,
    parts_of,
    steps,
)
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.keys import (
    Keys,
    changed_at,
    compact,
    created_at,
    delete,
    delete_all,
    entries,
    fields_of,
    get,
    get_all,
    put,
    transaction,
)
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb

_log = logging.getLogger(__name__)


class GuardedWriter:
    """Writes of one replica."""

    def __init__(self, members: EtcdMembers, keys: Keys, session: str) -> None:
        self._members = members
        self._keys = keys
        self._names = (f"{session}-{number}" for number in itertools.count(1))

    async def commit(self, changes: Changes, expected: int, elected: int) -> int:
        """Write all of it at an expected revision while the leader elected there leads.

        DeposedError and ConflictError: nothing was written.
        """
        name = self.new_name()
        if fits(changes):
            return await self._decide(name, self._keys.operations(changes), expected, elected)
        return await self.commit_batch(PendingCommit(name), changes, expected, elected)

    def new_name(self) -> str:
        """A name that no other commit has."""
        return next(self._names)

    async def commit_batch(
        self,
        batch: PendingCommit,
        changes: Changes,
        expected: int,
        elected: int,
        besides: Sequence[pb.RequestOp] = (),
    ) -> int:
        """As `commit`, for any number of rows."""
        for number, part in enumerate(parts_of(changes)):
            await self._stage(put(self._keys.part(batch.commit, number), part), elected)
        decision = [put(self._keys.pending, batch.value()), *besides]
        revision = await self._decide(batch.commit, decision, expected, elected)
        try:
            await self.finish(replace(batch, mod_revision=revision), elected)
        except (StoreUnavailableError, StoreFullError, DeposedError) as error:
            # It is committed; the next writer brings the rows up to it first.
            _log.info("rows committed; they are copied by the next write: %s", error)
        return revision

    async def finish(self, batch: PendingCommit, elected: int) -> None:
        """Bring the rows up to a batch that is decided."""
        keys = self._keys
        look = transaction((), [get(keys.pending), get_all(keys.parts(batch.commit))])
        found = await self._members.call("range", lambda member: member.kv.Txn, look)
        pending, parts = (each.response_range.kvs for each in found.responses)
        if not pending or pending[0].mod_revision != batch.mod_revision:
            return
        if batch.wipe:
            await self._step([delete_all(keys.rows)], batch, elected)
        for step in steps(changes_in([part.value for part in parts])):
            await self._step(keys.operations(step), batch, elected)
        await self._step([delete(keys.pending), delete_all(keys.batches)], batch, elected)

    async def _decide(
        self, name: str, operations: Sequence[pb.RequestOp], expected: int, elected: int
    ) -> int:
        keys = self._keys
        request = transaction(
            (
                created_at(keys.leader, elected),
                changed_at(keys.head, expected),
                created_at(keys.pending, 0),
            ),
            [put(keys.head, compact({"commit": name})), *operations],
            [get(keys.leader), get(keys.head), get(keys.pending)],
        )
        repeated = False
        while True:
            answer = await self._members.ask("txn", lambda member: member.kv.Txn, request)
            if answer.response.succeeded:
                return answer.response.header.revision
            repeated = repeated or answer.repeated
            leader, head, pending = entries(answer.response)
            if head is not None and fields_of(head).get("commit") == name:
                return head.mod_revision
            found = head.mod_revision if head is not None else 0
            if repeated and found != expected:
                raise StoreUnavailableError(
                    "etcd did not answer, and another replica has written since: whether this was "
                    "written before is unknown; load again"
                )
            _check_leader(leader, elected)
            if found != expected:
                raise StoreConflictError(
                    f"rows are at revision {found}, not {expected}; load again"
                )
            if pending is not None:
                await self.finish(PendingCommit.of(pending), elected)

    async def _stage(self, operation: pb.RequestOp, elected: int) -> None:
        leader = self._keys.leader
        request = transaction([created_at(leader, elected)], [operation], [get(leader)])
        response = await self._members.call("txn", lambda member: member.kv.Txn, request)
        if not response.succeeded:
            _check_leader(entries(response)[0], elected)

    async def _step(
        self, operations: Sequence[pb.RequestOp], batch: PendingCommit, elected: int
    ) -> None:
        keys = self._keys
        request = transaction(
            [created_at(keys.leader, elected), changed_at(keys.pending, batch.mod_revision)],
            operations,
            [get(keys.leader)],
        )
        response = await self._members.call("txn", lambda member: member.kv.Txn, request)
        if not response.succeeded:
            # Otherwise it is finished: by an attempt whose answer was lost.
            _check_leader(entries(response)[0], elected)


def _check_leader(leader: kv_pb2.KeyValue | None, elected: int) -> None:
    now = leader.create_revision if leader is not None else 0
    if now != elected:
        raise DeposedError(
            f"the leader elected at {elected} no longer leads (now {now or 'no replica'}): nothing "
            "was written; campaign again"
        )
