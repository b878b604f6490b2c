"""Moves CapacityRequests from Pending to Acknowledged, in batches, several at once.

Nothing waits for it: roll-ups go on. A request that went away or is another one now is passed over;
what could not be written is tried again after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Final, Protocol

from bigfleet.kube import InvalidError, KubeClient, KubeError, NotFoundError
from bigfleet.kube.fleet import CAPACITY_REQUESTS
from bigfleet.kube.objects import Object
from bigfleet.observe.process import Clock
from bigfleet.operator.demand.requests import ACKNOWLEDGED
from bigfleet.operator.demand.rollup import RollUpEntry
from bigfleet.wire.backoff import Backoff

_NS: Final = 1_000_000_000
BATCH: Final = 1000
"""A batch is what one observation of the metric speaks of; at 200 a second it takes five."""
REQUESTS: Final = CAPACITY_REQUESTS.read_as(Object)
_log = logging.getLogger(__name__)


class AcknowledgeMetrics(Protocol):
    """What is counted."""

    def acknowledged(self, count: int, seconds: float) -> None:
        """A batch was written."""


class Acknowledger:
    """Tells requests that the shard knows of them."""

    def __init__(
        self,
        client: KubeClient,
        clock: Clock,
        counts: AcknowledgeMetrics,
        rng: Random,
        concurrency: int,
    ) -> None:
        self._client, self._clock, self._counts, self._rng = client, clock, counts, rng
        self._room = asyncio.Semaphore(concurrency)
        self._waiting: dict[tuple[str, str], RollUpEntry] = {}
        self._bell = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Requests still to be told."""
        return len(self._waiting)

    def put(self, entries: Iterable[RollUpEntry]) -> None:
        """The roll-up with these was taken."""
        for entry in entries:
            self._waiting[entry.key] = entry
        if self._waiting:
            self._bell.set()

    async def run(self) -> None:
        """Write until cancelled."""
        backoff = Backoff(first=0.5, longest=15.0, chance=self._rng)
        while True:
            await self._bell.wait()
            self._bell.clear()
            batch = [self._waiting.pop(key) for key in list(self._waiting)[:BATCH]]
            if not batch:
                continue
            began = self._clock.monotonic()
            moment = datetime.fromtimestamp(self._clock.now() // _NS, UTC)
            stamp = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
            try:
                written = await asyncio.gather(*(self._write(entry, stamp) for entry in batch))
            except BaseException:
                # Not lost: the next leader finds them Pending and in its first roll-up.
                self._waiting = {}
                raise
            self._counts.acknowledged(sum(written), self._clock.monotonic() - began)
            if any(entry.key in self._waiting for entry in batch):
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()
            if self._waiting:
                self._bell.set()

    async def _write(self, entry: RollUpEntry, stamp: str) -> bool:
        namespace, name = entry.key
        async with self._room:
            if entry.is_settled:
                return False
            operations = _operations(entry, stamp)
            try:
                await self._client.json_patch(
                    REQUESTS, name, operations, namespace, subresource="status"
                )
            except NotFoundError:
                return False
            except InvalidError as error:
                # Another object of that name: its own roll-up will speak for it.
                _log.debug("not acknowledged", extra={"request": name, "error": str(error)})
                return False
            except KubeError as error:
                _log.warning(
                    "not acknowledged",
                    extra={"request": f"{namespace}/{name}", "error": str(error)},
                )
                self._waiting.setdefault(entry.key, entry)
                return False
        return True


def _operations(entry: RollUpEntry, stamp: str) -> list[dict[str, object]]:
    """What makes the status say that the shard knows of it, and as a part of which need."""
    demand = entry.row.demand
    need = {"profile": demand.profile.fingerprint}
    if demand.group:
        need["group"] = demand.group
    operations: list[dict[str, object]] = [
        {"op": "test", "path": "/metadata/uid", "value": entry.uid},
        {"op": "add", "path": "/status/need", "value": need},
    ]
    if not entry.is_acknowledged:
        operations += [
            {"op": "add", "path": "/status/phase", "value": ACKNOWLEDGED},
            {"op": "add", "path": "/status/acknowledgedAt", "value": stamp},
        ]
    return operations
