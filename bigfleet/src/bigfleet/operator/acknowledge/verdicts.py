"""Why demand is not met, written on the CapacityRequests it concerns.

The shard tells what changed, row by row. A row that stays unmet for a while gets a condition Unmet
on its requests, with the shard's reason and sentence; when it is met, the condition says so. Writes
are few a second: a request's fate does not hang on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bigfleet.kube import KubeClient, KubeError, NotFoundError
from bigfleet.observe.process import Clock
from bigfleet.operator.acknowledge.writer import REQUESTS
from bigfleet.operator.demand.requests import UNMET
from bigfleet.operator.demand.rollup import RollUpBuilder, RollUpEntry, RowKey
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2 as shardread

MANAGER: Final = "bigfleet-operator-verdicts"
PATIENCE_SECONDS: Final = 30.0
"""How long a row may be unmet before its requests say so."""
SWEEP_SECONDS: Final = 5.0
PER_SWEEP: Final = 50
"""Writes between two looks: ten a second."""
_NS: Final = 1_000_000_000
_PREFIX: Final = "UNMET_REASON_"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a row is not met. `since` is by the monotonic clock."""

    reason: str
    message: str
    since: float


class RequestVerdicts:
    """What the shard said of each row, and what the requests say."""

    def __init__(self, client: KubeClient, clock: Clock, rollups: RollUpBuilder) -> None:
        self._client, self._clock, self._rollups = client, clock, rollups
        self._unmet: dict[RowKey, Unmet] = {}
        self._opened_at = clock.monotonic()

    def hear(self, verdicts: pb.NeedVerdicts) -> None:
        """What changed."""
        for one in verdicts.verdicts:
            key = (one.profile_fingerprint, one.group, one.size_class)
            if one.satisfied:
                self._unmet.pop(key, None)
                continue
            before = self._unmet.get(key)
            since = self._clock.monotonic() if before is None else before.since
            self._unmet[key] = Unmet(reason_word(one.reason), one.message, since)

    def not_expressible(self, entries: Iterable[RollUpEntry]) -> None:
        """The shard cannot be told of these."""
        words = "the shard of this cluster does not know the operators Gt and Lt; upgrade it"
        for entry in entries:
            key = entry.row.demand.key
            self._unmet.setdefault(
                key, Unmet("NotExpressible", words, self._clock.monotonic() - PATIENCE_SECONDS)
            )

    def session_opened(self) -> None:
        """A new session tells everything again."""
        self._unmet.clear()
        self._opened_at = self._clock.monotonic()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        """Write what is not said yet, up to the bound."""
        for number, (entry, unmet) in enumerate(self._due()):
            if number >= PER_SWEEP:
                return
            try:
                await self._write(entry, unmet)
            except NotFoundError:
                # It went; the watch will say so.
                continue
            except KubeError as error:
                _log.warning(
                    "condition not written",
                    extra={"request": "/".join(entry.key), "error": str(error)},
                )
                return

    def _due(self) -> Iterator[tuple[RollUpEntry, Unmet | None]]:
        now = self._clock.monotonic()
        for key, unmet in list(self._unmet.items()):
            row = self._rollups.row(key)
            if row is None:
                del self._unmet[key]
            elif now - unmet.since >= PATIENCE_SECONDS:
                for entry in list(row.members.values()):
                    if entry.unmet != unmet.reason:
                        yield entry, unmet
        if now - self._opened_at < PATIENCE_SECONDS:
            # The shard may not have told yet what is still unmet.
            return
        for request in list(self._rollups.unmet):
            known = self._rollups.get(request)
            if known is not None and known.row.demand.key not in self._unmet:
                yield known, None

    async def _write(self, entry: RollUpEntry, unmet: Unmet | None) -> None:
        namespace, name = entry.key
        moment = datetime.fromtimestamp(self._clock.now() // _NS, UTC)
        condition = {
            "type": UNMET,
            "status": "False" if unmet is None else "True",
            "reason": "Met" if unmet is None else unmet.reason,
            "message": "" if unmet is None else unmet.message,
            "lastTransitionTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body = {"status": {"conditions": [condition]}}
        await self._client.apply(
            REQUESTS, name, body, namespace, manager=MANAGER, subresource="status"
        )
        entry.unmet = "" if unmet is None else unmet.reason
        (self._rollups.unmet.add if entry.unmet else self._rollups.unmet.discard)(entry.key)


def reason_word(reason: int) -> str:
    """The shard's reason as a condition has it, such as StockOut."""
    try:
        name = shardread.UnmetReason.Name(shardread.UnmetReason.ValueType(reason))
    except ValueError:
        return "Unmet"
    words = name.removeprefix(_PREFIX).split("_")
    made = "".join(word.capitalize() for word in words)
    return "Unmet" if made == "Unspecified" else made
