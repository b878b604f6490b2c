"""Old revisions, let go: etcd keeps every one until it is told to compact, and then it is full.

The leader compacts every five minutes to where the store stood five minutes ago, which leaves any
watch and any load time to finish. In an etcd shared with others this concerns their history too,
as an automatic compaction would.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from bigfleet.coordinator.store.errors import StoreError
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.keys import Keys
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.interface import Leadership

EVERY_SECONDS: Final = 300.0

_log = logging.getLogger(__name__)


async def compact_while(
    leadership: Leadership, members: EtcdMembers, keys: Keys, every: float = EVERY_SECONDS
) -> None:
    """Compact now and then, until the leadership is lost."""
    before = 0
    while not leadership.lost.is_set():
        try:
            if before:
                await compact_to(members, before)
            before = await revision_now(members, keys)
        except StoreError as error:
            # Another client may have compacted further, or this user may not.
            _log.info("etcd was not compacted: %s", error)
            before = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await leadership.lost.wait()


async def revision_now(members: EtcdMembers, keys: Keys) -> int:
    """Where etcd stands."""
    request = pb.RangeRequest(key=keys.head, count_only=True)
    return (await members.call("get", lambda member: member.kv.Range, request)).header.revision


async def compact_to(members: EtcdMembers, revision: int) -> None:
    """Forget how things were before a revision."""
    request = pb.CompactionRequest(revision=revision)
    await members.call("put", lambda member: member.kv.Compact, request)
