"""FAILED slots become free again: what carries their id is removed, then a new life begins.

A slot is due some time after it failed; a Create that was refused before anything was made is due
sooner, since there is nothing to clean. A cleanup that fails is tried again with growing pauses and
leaves the slot FAILED with the new reason. Fencing marks stay.
"""

import asyncio
import contextlib
import heapq
from collections.abc import Iterable
from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.bug_log import classed
from bigfleet_providerkit.backend.gather import gather
from bigfleet_providerkit.backend.hosts import host_of
from bigfleet_providerkit.backend.reconcile.plan import ABSENT
from bigfleet_providerkit.backend.state.ledger import Edit, Ledger
from bigfleet_providerkit.backend.steps import Steps
from bigfleet_providerkit.calls.retry import within
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import (
    Gone,
    NothingSent,
    Retryable,
    StoreUnavailable,
    SubstrateError,
    error_line,
)
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import Kind, State
from bigfleet_providerkit.machines.transitions import reborn
from bigfleet_providerkit.options.settings import HEAL_REFUSED_AFTER, Settings
from bigfleet_providerkit.substrate import Host, Power, Substrate

FIRST_PAUSE, LONGEST_PAUSE = 15.0, 600.0
NOTHING_MADE = (
    "OutOfCapacity:", "QuotaExceeded:", f"{NothingSent.word}: {NothingSent.opening}",
)  # fmt: skip


def nothing_was_made(record: Record) -> bool:
    """Whether a Create was refused before there was anything to clean."""
    refused = record.last_error.startswith(NOTHING_MADE)
    return refused and record.failed_in == Kind.CREATE.word and not record.host


def due_at(record: Record, heal_after: float) -> float | None:
    """When a failed slot is due; None means never."""
    if nothing_was_made(record):
        after = min(HEAL_REFUSED_AFTER, heal_after) if heal_after else HEAL_REFUSED_AFTER
        return record.failed_at + after
    return record.failed_at + heal_after if heal_after else None


class Healer:
    """Keeps the failed slots in the order in which they are due."""

    def __init__(
        self,
        substrate: Substrate,
        ledger: Ledger,
        steps: Steps,
        settings: Settings,
        runtime: Runtime,
        metrics: Metrics,
        log: FilteringBoundLogger,
    ) -> None:
        self._substrate = substrate
        self._ledger = ledger
        self._steps = steps
        self._settings = settings
        self._runtime = runtime
        self._metrics = metrics
        self._log = log
        self._due: list[tuple[float, str, int]] = []
        self._pauses: dict[str, float] = {}
        self._wake = asyncio.Event()

    def failed(self, record: Record) -> None:
        """A machine became FAILED."""
        due = due_at(record, self._settings.heal_after)
        if due is not None:
            heapq.heappush(self._due, (due, record.id, record.life))
            self._wake.set()

    async def loop(self) -> None:
        """Heal what is due, until the provider stops."""
        while True:
            self._wake.clear()
            await self.run()
            if not self._due:
                await self._wake.wait()
                continue
            pause = max(0.0, self._due[0][0] - self._runtime.clock.now())
            timer = self._runtime.clock.call_later(pause, self._wake.set)
            await self._wake.wait()
            timer.cancel()

    async def run(self) -> None:
        """Heal everything that is due now."""
        now = self._runtime.clock.now()
        records = []
        while self._due and self._due[0][0] <= now:
            _, machine, life = heapq.heappop(self._due)
            record = self._ledger.inventory.get(machine)
            if record is not None and record.state is State.FAILED and record.life == life:
                records.append(record)
        if records:
            await self._heal(records)

    async def release(self, machine: str) -> str:
        """Heal one slot now, whatever the clock says; the text tells a person what happened."""
        record = self._ledger.inventory.get(machine)
        if record is None:
            return f"there is no machine {machine}"
        if record.state is not State.FAILED:
            return f"{machine} is {record.state.word}; only a Failed machine is released"
        await self._heal([record])
        after = self._ledger.inventory.get(machine)
        if after is None or after.state is State.SPECULATIVE:
            return f"{machine} is free"
        return f"{machine} is still {after.state.word}: {after.last_error}"

    async def _heal(self, records: Iterable[Record]) -> None:
        empty = [record for record in records if nothing_was_made(record)]
        rest = [record for record in records if not nothing_was_made(record)]
        for record in empty:
            await self._reborn(record)
        if not rest:
            return
        try:
            listed: dict[str, list[Host]] = {}
            for host in await self._substrate.list_managed():
                listed.setdefault(host.machine_id, []).append(host)
        except Exception as error:  # noqa: BLE001 - whatever it was, the slots stay due
            problem = classed(error, self._metrics, self._log)
            for record in rest:
                await self._not_healed(record, problem)
            return
        await gather(rest, lambda record: self._heal_one(record, listed.get(record.id, [])))

    async def _heal_one(self, record: Record, listed: list[Host]) -> None:
        try:
            await self._clean(record, listed)
        except Exception as error:  # noqa: BLE001 - and so does one slot
            await self._not_healed(record, classed(error, self._metrics, self._log))
        else:
            await self._reborn(record)

    async def _clean(self, record: Record, listed: list[Host]) -> None:
        hosts = {host.ref: host for host in listed}
        if record.host:
            hosts.setdefault(record.host, host_of(record, self._ledger))
        for host in hosts.values():
            # One that was taken away may still be there, with a disk that is paid for.
            if host.power is not Power.GONE:
                await self._terminate(host)
        if not hosts:
            return
        for host in await self._substrate.list_managed(list(hosts)):
            if host.power not in ABSENT:
                raise Retryable(f"host {host.ref} is still {host.power}")

    async def _terminate(self, host: Host) -> None:
        """Tried once: the pauses between two tries are those of the slot."""
        work = self._substrate.terminate(host)
        with contextlib.suppress(Gone):
            await within(self._runtime, self._settings.timeouts.delete, work)

    async def _reborn(self, record: Record) -> None:
        async with self._ledger.hold(record.id):
            current = self._ledger.inventory.get(record.id)
            if current is None or current.state is not State.FAILED or current.life != record.life:
                return
            edit = Edit(record=reborn(current), notes={record.id: None})
            if current.extra:
                edit = Edit(remove=record.id)
            try:
                await self._ledger.commit(edit)
            except StoreUnavailable as error:
                self._again(current, str(error))
                return
        self._pauses.pop(record.id, None)
        self._log.info("machine healed", machine=record.id, after=record.last_error)

    async def _not_healed(self, record: Record, error: SubstrateError) -> None:
        self._metrics.heal_failures.inc()
        line = f"{error.word}: cleanup failed: {error}"
        self._again(record, line)
        async with self._ledger.hold(record.id):
            current = self._ledger.inventory.get(record.id)
            if current is None or current.state is not State.FAILED:
                return
            text = error_line(type(error)(f"cleanup failed: {error}"))
            if current.last_error != text:
                try:
                    await self._ledger.commit(Edit(record=replace(current, last_error=text)))
                except StoreUnavailable:
                    # The old reason stays, which is true as well.
                    return

    def _again(self, record: Record, reason: str) -> None:
        pause = self._pauses.get(record.id, FIRST_PAUSE)
        self._pauses[record.id] = min(LONGEST_PAUSE, 2 * pause)
        wait = pause * self._runtime.rng.uniform(0.5, 1.0)
        due = self._runtime.clock.now() + wait
        heapq.heappush(self._due, (due, record.id, record.life))
        self._wake.set()
        self._log.warning("cleanup failed; will retry", machine=record.id, error=reason)
