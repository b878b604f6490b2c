"""What changes of the book tell those who execute.

A provider works after its ack: how long it took, that a Create failed in the end, that a machine
in its grace is gone, that a line of the journal has lost its meaning - all of that is seen when
the book changes, whatever changed it. Nothing here changes the book.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from bigfleet.model import Machine, MachineState
from bigfleet.model.lifecycle import TRANSITIONAL
from bigfleet.observe.process import Clock
from bigfleet.shard.act.backoff import COOLS_OFFERING, BackoffTable
from bigfleet.shard.act.pending_drains import PendingDrains
from bigfleet.shard.act.ports import ExecuteMetrics
from bigfleet.shard.providers.create_failures import class_of_error
from bigfleet.shard.state.journal import Journal, JournalEntry

S = MachineState
RETRY_SECONDS: Final = 1.0
_NO_STAMP_OF_ITS_OWN: Final = frozenset({S.SPECULATIVE, S.FAILED})
_log = logging.getLogger(__name__)


class JournalKeeper:
    """Writes lines before they are needed and takes those back that mean nothing any more."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._written: set[str] = set()
        self._idle: dict[str, None] = {}
        self._more = asyncio.Event()

    def restored(self, machine_ids: Iterable[str]) -> None:
        """The journal had lines for these when the process started."""
        self._written.update(machine_ids)

    def machines(self) -> list[str]:
        """Those with a line in the journal."""
        return sorted(self._written)

    async def remember(self, machine_id: str, entry: JournalEntry) -> None:
        """Durable when it returns."""
        self._idle.pop(machine_id, None)
        self._written.add(machine_id)
        await self._journal.remember(machine_id, entry)

    async def forget(self, machine_id: str) -> None:
        """Durable when it returns."""
        self._idle.pop(machine_id, None)
        if machine_id not in self._written:
            return
        self._written.discard(machine_id)
        try:
            await self._journal.forget(machine_id)
        except OSError:
            if machine_id not in self._written:
                self._written.add(machine_id)
                self._idle[machine_id] = None
                self._more.set()
            raise

    def changed(self, machine_id: str, after: Machine | None) -> None:
        """Take a line back soon when the machine shows that it means nothing."""
        if machine_id not in self._written:
            return
        if not _is_moot(after):
            self._idle.pop(machine_id, None)
        elif machine_id not in self._idle:
            self._idle[machine_id] = None
            self._more.set()

    async def run(self) -> None:
        """Take back what is moot, until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            # All at once: the journal flushes together what waits together.
            moot = [self.forget(machine_id) for machine_id in self._idle]
            for failed in await asyncio.gather(*moot, return_exceptions=True):
                if isinstance(failed, OSError):
                    _log.warning("journal cannot be written: %s", failed)
                    await asyncio.sleep(RETRY_SECONDS)
                    break


def _is_moot(machine: Machine | None) -> bool:
    """Whether everything that must be known of a machine stands at its provider."""
    if machine is None or machine.state in _NO_STAMP_OF_ITS_OWN:
        return True
    if machine.state is S.IDLE:
        return machine.stamp is None
    return machine.state is S.CONFIGURED and machine.leaving is None


class BookListener:
    """A subscriber of the book."""

    def __init__(
        self,
        clock: Clock,
        drains: PendingDrains,
        failures: BackoffTable,
        journal: JournalKeeper,
        metrics: ExecuteMetrics,
        wake: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._drains = drains
        self._failures = failures
        self._journal = journal
        self._metrics = metrics
        self._wake = wake
        self._accepted: dict[str, float] = {}
        self._drain_sent: dict[str, float] = {}

    def accepted(self, machine_id: str) -> None:
        """A provider took a mutation of this machine just now."""
        self._accepted[machine_id] = self._clock.monotonic()

    def told_to_leave(self, machine_id: str, since: float | None) -> None:
        """A machine's Drain is sent; it was told to leave then, if that is known."""
        if since is not None:
            self._drain_sent[machine_id] = since

    def on_change(self, before: Machine | None, after: Machine | None) -> None:
        """A machine changed, came or went."""
        known = after or before
        if known is None:
            return
        self._journal.changed(known.id, after)
        if after is None or (after.leaving is None and before is not None and before.leaving):
            self._drains.remove(known.id)
        if after is None:
            self._accepted.pop(known.id, None)
            self._drain_sent.pop(known.id, None)
        elif before is not None and before.state is not after.state:
            self._moved(before, after)

    def _moved(self, before: Machine, after: Machine) -> None:
        match before.state, after.state:
            case S.SPECULATIVE, S.CREATING:
                self._failures.create_begun(after)
            case S.CREATING, S.IDLE:
                self._took(after.id, self._metrics.created)
                self._failures.created(after)
            case S.CREATING, S.FAILED:
                self._create_failed(after)
            case S.CONFIGURING, S.CONFIGURED:
                self._took(after.id, self._metrics.joined)
            case S.DRAINING, S.IDLE:
                self._took(after.id, self._metrics.drained)
                sent = self._drain_sent.pop(after.id, None)
                if sent is not None:
                    self._failures.drained(after, self._clock.monotonic() - sent)
        if after.state not in TRANSITIONAL:
            self._accepted.pop(after.id, None)

    def _took(self, machine_id: str, observe: Callable[[float], None]) -> None:
        since = self._accepted.pop(machine_id, None)
        if since is not None:
            observe(self._clock.monotonic() - since)

    def _create_failed(self, machine: Machine) -> None:
        failure = class_of_error(machine.last_error)
        self._metrics.create_failed(failure)
        self._failures.create_failed(machine, failure, machine.last_error)
        keys = {"machine": machine.id, "reason": str(failure), "error": machine.last_error}
        _log.warning("create failed at the provider", extra=keys)
        if failure in COOLS_OFFERING:
            # Another offering may serve: no reason to wait for the next tick.
            self._wake()
