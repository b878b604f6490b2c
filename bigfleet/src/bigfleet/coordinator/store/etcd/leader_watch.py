"""Who leads, watched: the leader's key is read once, then every change of it is streamed.

A stream that breaks is taken up again at another member behind the last revision seen, so nothing
is missed; when that revision has been compacted away, the key is read again. A stream may also
fall silent without breaking, so the key is read every two seconds besides. When no member answers,
no leader is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from random import Random
from typing import Final

from bigfleet.coordinator.store.errors import StoreError, StoreUnavailableError
from bigfleet.coordinator.store.etcd.connection.faults import CompactedError
from bigfleet.coordinator.store.etcd.connection.members import ATTEMPT_SECONDS, EtcdMembers
from bigfleet.coordinator.store.etcd.election import LONGEST_SECONDS, Election
from bigfleet.coordinator.store.etcd.keys import Keys, LeaderRecord
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.leaders import Leaders
from bigfleet.wire.backoff import Backoff

PAUSE_SECONDS: Final = 0.2
LOOK_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)


class LeaderWatch:
    """Keeps `Leaders` true and tells the election what happens to its key."""

    def __init__(
        self, members: EtcdMembers, keys: Keys, leaders: Leaders, election: Election, session: str
    ) -> None:
        self._members = members
        self._keys = keys
        self._leaders = leaders
        self._election = election
        self._revision = 0
        """The last one seen; 0: the key has to be read first."""
        self._breaks = 0
        """Streams that broke before they said anything."""
        self._away = Backoff(PAUSE_SECONDS, LOOK_SECONDS, Random(session))
        self._refused = Backoff(LOOK_SECONDS, LONGEST_SECONDS, Random(session))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self._revision:
                    await self._read()
                await first_end(self._stream(), self._look())
            except CompactedError:
                self._revision = 0
                continue
            except StoreError as error:
                self._broken(error)
                passing = isinstance(error, StoreUnavailableError)
                await asyncio.sleep((self._away if passing else self._refused).next())

    def _broken(self, error: StoreError) -> None:
        """No member could be read, or a stream broke: the next member may have a better one."""
        self._breaks += 1
        if not self._revision or self._breaks > self._members.count:
            _log.warning("no leader is known: %s", error)
            self._revision = 0
            self._leaders.show(None)

    async def _read(self) -> None:
        found = await self._members.call(
            "get",
            lambda member: member.kv.Range,
            pb.RangeRequest(key=self._keys.leader),
            2 * ATTEMPT_SECONDS,
        )
        self._seen(found.kvs[0] if found.kvs else None, found.header.revision)

    async def _look(self) -> None:
        """Whether anybody still answers."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._read()
            except StoreError:
                self._revision = 0
                raise

    async def _stream(self) -> None:
        request = pb.WatchRequest(
            create_request=pb.WatchCreateRequest(
                key=self._keys.leader, start_revision=self._revision + 1
            )
        )
        answers = self._members.stream(lambda member: member.watch.Watch, request)
        async with aclosing(answers) as responses:
            async for response in responses:
                self._breaks = 0
                if response.compact_revision:
                    raise CompactedError(f"compacted up to {response.compact_revision}")
                if response.canceled:
                    raise StoreUnavailableError(f"etcd ended a watch: {response.cancel_reason}")
                for event in response.events:
                    gone = event.type == kv_pb2.Event.DELETE
                    self._seen(None if gone else event.kv, event.kv.mod_revision)

    def _seen(self, entry: kv_pb2.KeyValue | None, revision: int) -> None:
        self._away.reset()
        self._refused.reset()
        self._revision = max(self._revision, revision)
        elected = None if entry is None else LeaderRecord.of(entry)
        self._leaders.show(None if elected is None else elected.leader, revision)
        self._election.seen(elected, revision)


async def first_end(*work: Coroutine[None, None, None]) -> None:
    """Run all of it until one ends, which is how this ends too."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
