"""The audit log: one JSON line for every decision and its end.

A record costs the event loop one append to a bounded queue; lines are made and written away from
it, many at a time. A full queue drops the newest, a disk that refuses loses what it is given: both
are counted, and told when they begin and when they are over. Nothing here ever holds up an action.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.act.decisions import Decision

QUEUE: Final = 20_000
BATCH: Final = 2_000
_SECOND: Final = 1_000_000_000
_log = logging.getLogger(__name__)

Write = Callable[[bytes], None]
"""Adds lines at the end of the log; may block, raises OSError."""


class AuditLog:
    """Records on their way to a file."""

    def __init__(self, write: Write, offload: Offload, queue: int = QUEUE) -> None:
        self._write = write
        self._offload = offload
        self._most = queue
        self._waiting: deque[Decision] = deque()
        self._more = asyncio.Event()
        self._failing = False
        self._behind = False
        self.dropped = 0
        """Records that found the queue full."""
        self.lost = 0
        """Records that could not be written."""

    def record(self, decision: Decision) -> None:
        """One more line; dropped when too many wait."""
        if len(self._waiting) >= self._most:
            if not self._behind:
                _log.warning("audit log falls behind; records are dropped until it has caught up")
            self._behind = True
            self.dropped += 1
            return
        self._waiting.append(decision)
        if not self._more.is_set():
            self._more.set()

    async def run(self) -> None:
        """Write what comes, until cancelled."""
        _log.info("decision audit log enabled")
        while True:
            await self._more.wait()
            self._more.clear()
            await self.flush()

    async def flush(self) -> None:
        """Everything recorded so far is written, or counted as lost."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            await self._offload(lambda batch=batch: self._write_all(batch))  # type: ignore[misc]
        if self._behind:
            _log.info("audit log has caught up", extra={"dropped": self.dropped})
        self._behind = False

    def _write_all(self, batch: Sequence[Decision]) -> None:
        try:
            self._write(b"".join(line_of(decision) for decision in batch))
        except OSError as error:
            self.lost += len(batch)
            if not self._failing:
                _log.error("audit log cannot be written; records are lost until it can: %s", error)
            self._failing = True
            return
        if self._failing:
            _log.info("audit log is written again", extra={"lost": self.lost})
        self._failing = False


def line_of(decision: Decision) -> bytes:
    """One line of the log."""
    seconds, nanos = divmod(decision.unix_nanos, _SECOND)
    time = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    record = {
        "time": f"{time}.{nanos:09d}Z",
        "cycle": decision.cycle,
        "kind": decision.kind,
        "machine": decision.machine_id,
        "cluster": decision.cluster_id,
        "need": decision.profile_fingerprint,
        "reason": decision.reason,
        "grace": decision.grace_seconds,
        "outcome": decision.outcome,
    }
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
