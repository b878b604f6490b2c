"""Transitions in the background: from the accepted mutation to its end.

The work of a transition is a task with a time limit. Its end takes effect only if the machine still
is where the operation put it, and is visible once it is committed; a store that cannot be written
makes it wait, not vanish. A result that comes after the time was up is dropped, and the host it
made is removed.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.state.ledger import Edit, LateOperation, Ledger, Work
from bigfleet_providerkit.backend.steps import Steps
from bigfleet_providerkit.calls.retry import Budget, budget
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import (
    Gone,
    Interrupted,
    NothingSent,
    OutOfCapacity,
    QuotaExceeded,
    StoreUnavailable,
    SubstrateError,
    TransitionTimeout,
    error_line,
)
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.machines.transitions import fail, in_progress, succeed
from bigfleet_providerkit.options.units import write_duration
from bigfleet_providerkit.store.rows import NotesRow
from bigfleet_providerkit.substrate import Host

STORE_PAUSE = 1.0
# A Create that was refused like this left nothing behind that would have to be looked for.
NOTHING_MADE = (OutOfCapacity, QuotaExceeded, NothingSent)
INTERRUPTED = "configure was running when the provider stopped and its bootstrap data is not kept"


@dataclass(frozen=True, slots=True)
class _End:
    """How a transition ends: what it changes, and who hears whether that took effect."""

    record: Record
    work: Work
    edit: Callable[[Record], Edit]
    then: Callable[[bool], None]


class Runner:
    """Starts transitions and brings them to their end."""

    def __init__(
        self,
        ledger: Ledger,
        steps: Steps,
        runtime: Runtime,
        metrics: Metrics,
        log: FilteringBoundLogger,
        on_failed: Callable[[Record], None],
        on_gone: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._steps = steps
        self._runtime = runtime
        self._metrics = metrics
        self._log = log
        self._on_failed = on_failed
        self._on_gone = on_gone
        self._working: set[asyncio.Task[Host | None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._stopping = False

    def begin(self, record: Record, work: Work, secret: bytes = b"") -> None:
        """Start the work of a mutation that was just accepted."""
        self._start(record, work, self._steps.perform(record, work, secret), resumed=False)

    def resume(self, record: Record, work: Work) -> None:
        """Go on with work that was in flight when the process stopped."""
        self._start(record, work, self._steps.resume(record, work), resumed=True)

    async def stop(self, grace: float) -> None:
        """Cancel the work, which the next start resumes; ends under way may be committed."""
        self._stopping = True
        for task in self._working:
            task.cancel()
        waited = {*self._working, *self._ending}
        if waited:
            await asyncio.wait(waited, timeout=grace)
        for ending in self._ending:
            ending.cancel()

    def _start(
        self,
        record: Record,
        work: Work,
        perform: Coroutine[object, object, Host | None],
        *,
        resumed: bool,
    ) -> None:
        """The work as a task, and a timer; whichever comes first decides how it ends."""
        clock = self._runtime.clock
        seconds = max(0.0, work.deadline - clock.now())
        now = clock.monotonic()
        context = contextvars.copy_context()
        context.run(budget.set, Budget(now, now + seconds))
        task = asyncio.get_running_loop().create_task(perform, context=context)
        self._working.add(task)
        expired = False

        def time_is_up() -> None:
            nonlocal expired
            expired = True
            task.cancel()
            self._failed(record, work, self._expiry(work, resumed=resumed))

        def over(done: "asyncio.Task[Host | None]") -> None:
            timer.cancel()
            self._working.discard(done)
            if expired:
                self._came_late(done, record, work)
            elif not (done.cancelled() and self._stopping):
                self._ended(done, record, work)

        timer = clock.call_later(seconds, time_is_up)
        task.add_done_callback(over)

    def _aside(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _ended(self, done: "asyncio.Task[Host | None]", record: Record, work: Work) -> None:
        """The work is over in time: with a result, an error, or a bug."""
        try:
            host = done.result()
        except SubstrateError as error:
            self._failed(record, work, error)
        except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001 - a bug must end as well
            self._metrics.panics.inc()
            self._log.error("transition met a bug", machine=record.id, exc_info=error)
            text = f"{work.kind.word} met a bug: {type(error).__name__}: {error}"
            self._failed(record, work, SubstrateError(text))
        else:
            self._succeeded(record, work, host)

    def _expiry(self, work: Work, *, resumed: bool) -> SubstrateError:
        if resumed and work.kind is Kind.CONFIGURE:
            return Interrupted(INTERRUPTED)
        limit = write_duration(round(work.deadline - work.started, 3))
        doing = self._steps.doing.get(work.operation, "")
        text = f"{work.kind.word} did not end within {limit}"
        return TransitionTimeout(f"{text}: {doing}" if doing else text)

    def _succeeded(self, record: Record, work: Work, host: Host | None) -> None:
        def ended(current: Record) -> Edit:
            shape = self._steps.refined(current) if work.kind is Kind.CREATE else None
            after = succeed(current, work.kind, host=host.ref if host else "", shape=shape)
            notes: dict[str, NotesRow | None] = {}
            if work.kind is Kind.CREATE and host is not None:
                notes[record.id] = self._steps.remembered(host)
            elif work.kind is Kind.DELETE:
                notes[record.id] = None
            if work.kind is Kind.DELETE and current.extra:
                return Edit(remove=record.id, work_ended=record.id)
            return Edit(record=after, work_ended=record.id, notes=notes)

        def then(applied: bool) -> None:
            if applied:
                self._report(record, work, "success", "")
            elif work.kind is Kind.CREATE and host is not None:
                self._aside(self._discard(record, work, host))

        self._end(_End(record, work, ended, then))

    def _failed(self, record: Record, work: Work, error: SubstrateError) -> None:
        line = error_line(error)
        at = self._runtime.clock.now()

        def ended(current: Record) -> Edit:
            edit = Edit(record=fail(current, line, at), work_ended=record.id)
            if work.kind is Kind.CREATE and not isinstance(error, NOTHING_MADE):
                edit.late[work.operation] = LateOperation(record.id, at)
            return edit

        def then(applied: bool) -> None:
            if not applied:
                return
            outcome = {"Timeout": "timeout", "Interrupted": "interrupted"}.get(error.word, "failed")
            self._report(record, work, outcome, line)
            failed = self._ledger.inventory.get(record.id)
            if failed is not None:
                self._on_failed(failed)
            if isinstance(error, Gone):
                self._on_gone()

        self._end(_End(record, work, ended, then))

    def _end(self, end: "_End") -> None:
        """Commit an end if it still concerns the machine; at once when its lock is free."""
        self._steps.doing.pop(end.work.operation, None)
        if self._ledger.locks.acquire_now(end.record.id):
            self._commit(end)
        else:
            self._aside(self._end_after(0.0, end))

    async def _end_after(self, seconds: float, end: "_End") -> None:
        if seconds:
            await self._runtime.clock.sleep(seconds)
        await self._ledger.locks.acquire(end.record.id)
        self._commit(end)

    def _commit(self, end: "_End") -> None:
        """Holding the machine's lock. A store that is full is tried again, an end never dropped."""
        machine, locks = end.record.id, self._ledger.locks
        current = self._ledger.inventory.get(machine)
        if current is None or not in_progress(current, end.work.kind, end.work.operation):
            locks.release(machine)
            end.then(False)
            return

        def done(error: StoreUnavailable | None) -> None:
            locks.release(machine)
            if error is None:
                end.then(True)
                return
            self._log.error("the end of a transition waits for the store", error=str(error))
            if not self._stopping:
                self._aside(self._end_after(STORE_PAUSE, end))

        self._ledger.submit(end.edit(current), done)

    def _came_late(self, done: "asyncio.Task[Host | None]", record: Record, work: Work) -> None:
        """The time was up before the work was: drop what it brought."""
        if not done.cancelled() and done.exception() is None and not self._stopping:
            self._aside(self._discard(record, work, done.result()))

    async def _discard(self, record: Record, work: Work, host: Host | None) -> None:
        self._metrics.ended(work.kind, "discarded", 0.0)
        self._log.warning(
            "result came too late", machine=record.id, kind=work.kind.word, operation=work.operation
        )
        if host is None or work.kind is not Kind.CREATE:
            return
        try:
            await self._steps.remove_aside(host)
        except SubstrateError as error:
            # The late row stays: reconcile removes the host when it sees it.
            self._log.warning(
                "a late host could not be removed yet", host=host.ref, error=str(error)
            )

    def _report(self, record: Record, work: Work, outcome: str, error: str) -> None:
        seconds = max(0.0, self._runtime.clock.now() - work.started)
        self._metrics.ended(work.kind, outcome, seconds)
        self._runtime.traces.ended(record.id, work.kind.word, work.started, outcome, error)
        say = self._log.info if outcome == "success" else self._log.warning
        if error.startswith("Unauthorized:"):
            # An administrator has to grant a permission; the text names it.
            say = self._log.error
        say(
            "transition ended", machine=record.id, kind=work.kind.word, operation=work.operation,
            outcome=outcome, seconds=round(seconds, 3), **({"error": error} if error else {}),
        )  # fmt: skip
