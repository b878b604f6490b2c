"""What goes on by itself while a provider serves: reconcile, prices, notices, a look at the store.

Each loop lives as long as the provider; an error in one round is logged and the next round comes. A
notice or a vanished host calls for an early reconcile.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.reconcile.reconciler import Reconciler
from bigfleet_providerkit.backend.state.ledger import Edit, Ledger
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.catalogue.price_refresh import PriceRefresh
from bigfleet_providerkit.catalogue.sources import Source
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import StoreUnavailable, SubstrateError
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import WITH_HOST, State
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.substrate import KnowsInterruptions, Notice, NoticeKind, Substrate

STORE_PROBE = 1.0
STREAM_PAUSE = 5.0
CHUNK = 500


class Loops:
    """The background of one provider."""

    def __init__(
        self,
        substrate: Substrate,
        ledger: Ledger,
        catalogue: OfferingCatalogue,
        reconciler: Reconciler,
        settings: Settings,
        runtime: Runtime,
        metrics: Metrics,
        log: FilteringBoundLogger,
    ) -> None:
        self._substrate = substrate
        self._ledger = ledger
        self._catalogue = catalogue
        self._reconciler = reconciler
        self._settings = settings
        self._runtime = runtime
        self._metrics = metrics
        self._log = log
        self._early = asyncio.Event()
        self._changed_shapes = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, heal: Callable[[], Awaitable[None]], refresh: PriceRefresh) -> None:
        """Begin all loops that the settings ask for."""
        self._refresh = refresh
        loops: list[Callable[[], Awaitable[None]]] = [heal, self._watch_store, self._renew]
        if self._settings.reconcile_interval > 0:
            loops.append(self._reconcile)
        due = [source for source in refresh.sources if source.every > 0]
        loops += [functools.partial(self._read_for_ever, source) for source in due]
        if isinstance(self._substrate, KnowsInterruptions):
            loops.append(self._notices)
        for loop in loops:
            task = asyncio.get_running_loop().create_task(self._forever(loop))
            self._tasks.append(task)

    async def stop(self) -> None:
        """End all loops."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)

    def reconcile_soon(self) -> None:
        """Something happened to a host: look now."""
        self._early.set()

    def renew_soon(self) -> None:
        """The shapes of offerings changed: bring the records up to date."""
        self._changed_shapes.set()

    async def _renew(self) -> None:
        while True:
            await self._changed_shapes.wait()
            self._changed_shapes.clear()
            await self.renew_records()

    async def _forever(self, loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
                return
            except asyncio.CancelledError:
                raise
            except Exception:  # noqa: BLE001 - a bug in one round must not end the loop
                self._metrics.panics.inc()
                self._log.exception("a background loop met a bug")
                await self._runtime.clock.sleep(STREAM_PAUSE)

    async def _reconcile(self) -> None:
        clock = self._runtime.clock
        last_success = self._metrics.last_success("reconcile", clock.now())
        while True:
            self._early.clear()
            if await self._reconciler.run():
                last_success.set(clock.now())
            timer = clock.call_later(self._settings.reconcile_interval, self._early.set)
            await self._early.wait()
            timer.cancel()

    async def _read_for_ever(self, source: Source) -> None:
        clock = self._runtime.clock
        last_success = self._metrics.last_success("price", clock.now())
        while True:
            await clock.sleep(source.every)
            if await self._refresh.read(source):
                last_success.set(clock.now())
                await self.renew_records()

    async def renew_records(self) -> None:
        """Bring the records up to date with what the catalogue says now."""
        for number, machine in enumerate(list(self._ledger.inventory.snapshot())):
            if number % CHUNK == CHUNK - 1:
                await asyncio.sleep(0)
            record = self._ledger.inventory.get(machine)
            if record is None or self._catalogue.refreshed(record) is record.shape:
                continue
            await self._change(
                machine, lambda current: replace(current, shape=self._catalogue.refreshed(current))
            )

    async def _notices(self) -> None:
        assert isinstance(self._substrate, KnowsInterruptions)
        while True:
            try:
                async for notice in self._substrate.interruptions():
                    await self.noticed(notice)
            except SubstrateError as error:
                self._log.warning("notices are not heard; trying again", error=str(error))
            await self._runtime.clock.sleep(STREAM_PAUSE * self._runtime.rng.uniform(0.5, 1.5))

    async def noticed(self, notice: Notice) -> None:
        """Take one notice into its machine's record. The end of a host that we give back
        ourselves, or that belongs to no machine, is not news."""
        machine = self._ledger.inventory.machine_on(notice.ref)
        if notice.kind is NoticeKind.GONE and (machine is None or self._is_deleted(machine)):
            return
        if notice.kind is not NoticeKind.RETRACTED:
            self._metrics.interruptions.inc()
        if machine is not None:
            self._log.warning("interruption notice", machine=machine, kind=str(notice.kind))
            await self._change(machine, lambda record: _with_notice(record, notice))
        self.reconcile_soon()

    def _is_deleted(self, machine: str) -> bool:
        record = self._ledger.inventory.get(machine)
        return record is not None and record.state is State.DELETING

    async def _change(self, machine: str, change: Callable[[Record], Record]) -> None:
        async with self._ledger.hold(machine):
            record = self._ledger.inventory.get(machine)
            if record is None:
                return
            changed = change(record)
            if changed != record:
                try:
                    await self._ledger.commit(Edit(record=changed))
                except StoreUnavailable as error:
                    self._log.warning("a change waits for the store", error=str(error))

    async def _watch_store(self) -> None:
        """While the store cannot be written, try now and then whether it can again."""
        troubled = asyncio.Event()
        self._ledger.on_trouble = troubled.set
        while True:
            await troubled.wait()
            await self._runtime.clock.sleep(STORE_PROBE)
            troubled.clear()
            if self._ledger.store.trouble:
                try:
                    await self._ledger.commit(Edit())
                except StoreUnavailable:
                    continue


def _with_notice(record: Record, notice: Notice) -> Record:
    if record.state not in WITH_HOST:
        return record
    if notice.kind is NoticeKind.RETRACTED:
        return replace(record, observed=None, ends=0)
    ends = record.ends if notice.ends is None else int(notice.ends * 1e9)
    return replace(record, observed=min(1.0, max(0.0, notice.probability)), ends=ends)
