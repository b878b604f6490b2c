"""The election: one key that lives by the lease of the leader.

The replica that creates the key leads until it is gone, and its create revision, which no later key
can have again, guards every write. The lease is renewed every second. By its own clock a leader
counts the lease from before it asked for the renewal, so it knows that it may have lost before
anybody else can have won; etcd decides in any case, because the writes of a former leader no longer
pass.

While another replica leads, a candidate is woken by what `leader_watch` sees, and looks once a
second besides: a member that stopped talking must not cost the fleet its coordinator.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from bigfleet.coordinator.store.errors import StoreError, StoreUnavailableError
from bigfleet.coordinator.store.etcd.connection.faults import LeaseGoneError
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.keys import (
    Keys,
    LeaderRecord,
    changed_at,
    compact,
    created_at,
    entries,
    get,
    number_of,
    put,
    transaction,
)
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.interface import Leader, Leadership
from bigfleet.coordinator.store.leaders import Leaders
from bigfleet.observe.process import Clock
from bigfleet.wire.backoff import Backoff

LEASE_SECONDS: Final = 3
RENEW_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
MARGIN_SECONDS: Final = 0.25
"""How much earlier than etcd a leader thinks that its lease is over."""
PAUSE_SECONDS: Final = 0.2
"""After a renewal without an answer, and after the first look; later ones wait longer."""
LONGEST_SECONDS: Final = 10.0
"""Between looks that etcd refuses: trying a wrong password costs it more than anything else."""

_log = logging.getLogger(__name__)


class LeaderLease:
    """A leadership and what it rests on."""

    def __init__(self, clock: Clock, lease: int, create_revision: int, base: int, until: float):
        self.lease = lease
        self.create_revision = create_revision
        self.until = until
        """By the monotonic clock."""
        self.leadership = Leadership(
            base + create_revision, confirmed=lambda: clock.monotonic() < self.until
        )


@dataclass(frozen=True, slots=True)
class _Lease:
    id: int
    until: float


class Election:
    """Candidacies and leaderships of one replica."""

    def __init__(
        self,
        members: EtcdMembers,
        keys: Keys,
        clock: Clock,
        leaders: Leaders,
        replica: str,
        session: str,
    ) -> None:
        self._members = members
        self._keys = keys
        self._clock = clock
        self._leaders = leaders
        self._replica = replica
        self._session = session
        self._held: LeaderLease | None = None
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._away = Backoff(PAUSE_SECONDS, LOOK_SECONDS, Random(session))
        self._refused = Backoff(LOOK_SECONDS, LONGEST_SECONDS, Random(session))

    async def campaign(self, address: str) -> LeaderLease:
        """Wait until the key is ours."""
        while True:
            self._changed.clear()
            try:
                held = await self._try(address)
            except StoreError as error:
                _log.warning("cannot campaign, trying again: %s", error)
                passing = isinstance(error, StoreUnavailableError)
                await asyncio.sleep((self._away if passing else self._refused).next())
                continue
            self._away.reset()
            self._refused.reset()
            if held is not None:
                self._held = held
                self._leaders.show(Leader(address, held.leadership.term), held.create_revision)
                self._spawn(self._keep(held))
                return held
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()

    def held_by(self, leadership: Leadership) -> LeaderLease | None:
        """What a leadership rests on; None when it is none of ours or over."""
        held = self._held
        if held is None or held.leadership is not leadership or leadership.lost.is_set():
            return None
        return held

    def seen(self, elected: LeaderRecord | None, revision: int) -> None:
        """`leader_watch` saw the key like this at a revision of etcd."""
        self._changed.set()
        held = self._held
        if held is None or revision < held.create_revision:
            return
        if elected is None or elected.create_revision != held.create_revision:
            self._end(held)

    def lose(self, held: LeaderLease) -> None:
        """A write was refused because another replica leads."""
        self._end(held)

    async def resign(self, held: LeaderLease) -> None:
        """Let another replica lead at once."""
        self._end(held)
        await self._revoke(held.lease)

    async def close(self) -> None:
        """Resign, and end what runs."""
        if self._held is not None:
            await self.resign(self._held)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _try(self, address: str) -> LeaderLease | None:
        holder = await self._read(self._keys.leader)
        if holder is not None:
            elected = LeaderRecord.of(holder)
            self._leaders.show(elected.leader, elected.create_revision)
            if elected.session == self._session:
                # Left over from a leadership of ours that ended while etcd did not answer.
                await self._revoke(elected.lease)
                self._changed.set()
            return None
        base = await self._read(self._keys.base)
        lease = await self._grant()
        held = None
        try:
            held = await self._create(
                address, lease, number_of(base), base.mod_revision if base is not None else 0
            )
        finally:
            if held is None:
                self._spawn(self._revoke(lease.id))
        return held

    async def _read(self, key: bytes) -> kv_pb2.KeyValue | None:
        request = pb.RangeRequest(key=key)
        found = await self._members.call("get", lambda member: member.kv.Range, request)
        return found.kvs[0] if found.kvs else None

    async def _grant(self) -> _Lease:
        sent_monotonic_s = self._clock.monotonic()
        granted = await self._members.call(
            "lease",
            lambda member: member.lease.LeaseGrant,
            pb.LeaseGrantRequest(TTL=LEASE_SECONDS),
        )
        return _Lease(granted.ID, sent_monotonic_s + granted.TTL - MARGIN_SECONDS)

    async def _create(
        self, address: str, lease: _Lease, base: int, base_changed: int
    ) -> LeaderLease | None:
        fields: dict[str, object] = {
            "address": address,
            "replica": self._replica,
            "session": self._session,
            "base": base,
        }
        request = transaction(
            (created_at(self._keys.leader, 0), changed_at(self._keys.base, base_changed)),
            [put(self._keys.leader, compact(fields), lease.id)],
            [get(self._keys.leader)],
        )
        response = await self._members.call("txn", lambda member: member.kv.Txn, request)
        if response.succeeded:
            return LeaderLease(self._clock, lease.id, response.header.revision, base, lease.until)
        (holder,) = entries(response)
        if holder is not None and holder.lease == lease.id:
            # An earlier attempt was applied and its answer lost.
            return LeaderLease(self._clock, lease.id, holder.create_revision, base, lease.until)
        return None

    async def _keep(self, held: LeaderLease) -> None:
        """Hold the leadership until it is lost, then clear up."""
        try:
            await self._renew_until_lost(held)
        finally:
            self._end(held)
        await self._revoke(held.lease)

    async def _renew_until_lost(self, held: LeaderLease) -> None:
        lost = held.leadership.lost
        pause = RENEW_SECONDS
        while True:
            left = held.until - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(pause, left))):
                    await lost.wait()
            sent_monotonic_s = self._clock.monotonic()
            if lost.is_set() or sent_monotonic_s >= held.until:
                return
            try:
                held.until = sent_monotonic_s + await self._renew(
                    held.lease, held.until - sent_monotonic_s
                )
                pause = RENEW_SECONDS - (self._clock.monotonic() - sent_monotonic_s)
            except LeaseGoneError:
                return
            except StoreError as error:
                _log.warning("the lease could not be renewed, trying again: %s", error)
                pause = PAUSE_SECONDS

    async def _renew(self, lease: int, seconds: float) -> float:
        renewed = await self._members.exchange(
            "lease",
            lambda member: member.lease.LeaseKeepAlive,
            pb.LeaseKeepAliveRequest(ID=lease),
            seconds,
        )
        if renewed.TTL <= 0:
            raise LeaseGoneError("etcd has ended the lease")
        return renewed.TTL - MARGIN_SECONDS

    async def _revoke(self, lease: int) -> None:
        """End a lease, and with it the key, unless that takes as long as waiting for it."""
        request = pb.LeaseRevokeRequest(ID=lease)
        with suppress(StoreError):
            await self._members.call(
                "lease", lambda member: member.lease.LeaseRevoke, request, LEASE_SECONDS
            )

    def _end(self, held: LeaderLease) -> None:
        held.leadership.lost.set()
        if self._held is held:
            self._held = None
            current = self._leaders.current
            if current is not None and current.term == held.leadership.term:
                self._leaders.show(None)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
