"""An event loop without a clock of its own: time is a number, the order of callbacks is drawn.

When nothing is ready, time jumps to the next timer. Among what is ready, chance decides, so that a
seed finds orders that a real loop shows once a year. No threads, no sockets: what would wait for
them fails. Every task and future hashes by its number, so that sets of them have the same order in
every run.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import sys
import weakref
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple

from sim.process import PROCESS, Life, Process, remember, unfinished

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Context = contextvars.Context | None
INSTANT_LIMIT: Final = 500_000
"""Callbacks without time passing: by then something spins."""


class SimulationError(Exception):
    """The simulated program cannot go on."""


class DeadlockError(SimulationError):
    """Nothing is ready and nothing is due, but the run has not ended."""


class SpinError(SimulationError):
    """Callbacks follow one another without time passing."""


class StepLimitError(SimulationError):
    """More steps than the run was given."""


class UnhandledError(SimulationError):
    """A task or callback failed and no task looked."""


class SimTask(asyncio.Task[T]):
    """A task with a number."""

    def __init__(self, *args: Any, number: int, **kwargs: Any) -> None:
        self.number = number
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[Any]):
    """A future with a number."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.AbstractEventLoop):
    """The loop of one seed. `step_limit` 0 means none."""

    def __init__(self, rng: Random, *, step_limit: int = 0) -> None:
        self.steps = 0
        self._rng = rng
        self._step_limit = step_limit
        self._now = 0.0
        self._since_jump = 0
        self._ready: list[tuple[asyncio.Handle, Process | None]] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process | None]] = []
        self._numbers = itertools.count(1)
        self._running = False
        self._closed = False
        self._tasks: list[weakref.ref[asyncio.Task[Any]]] = []
        self._processes: dict[Process, None] = {}
        self._failure: BaseException | None = None

    # What the program sees.

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context = None
    ) -> asyncio.Handle:
        """Run it in this instant, in an order that is drawn."""
        where = contextvars.copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, where)
        self._ready.append((handle, where.get(PROCESS)))
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context = None
    ) -> asyncio.Handle:
        """The same: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context = None,
    ) -> asyncio.TimerHandle:
        """Run it after so many virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context = None,
    ) -> asyncio.TimerHandle:
        """Run it at a virtual time."""
        where = contextvars.copy_context() if context is None else context
        timer = asyncio.TimerHandle(when, callback, args, self, where)
        heapq.heappush(self._timers, (when, next(self._numbers), timer, where.get(PROCESS)))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return SimFuture(self, next(self._numbers))

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context = None, **rest: Any
    ) -> asyncio.Task[Any]:
        """A task, which belongs to the process of its context."""
        where = contextvars.copy_context() if context is None else context
        number = next(self._numbers)
        task: SimTask[Any] = SimTask(
            coro, loop=self, name=name or f"task-{number}", context=where, number=number, **rest
        )
        process = where.get(PROCESS)
        if process is None:
            remember(self._tasks, task)
        else:
            process.owns(task)
            self._processes[process] = None
        return task

    def get_debug(self) -> bool:
        """Never: debugging reads the real clock."""
        return False

    def is_running(self) -> bool:
        """Whether callbacks are being run."""
        return self._running

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Forget everything that is left, quietly."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when they are due."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What no handler caught fails the run."""
        error = context.get("exception")
        text = str(context.get("message", "a callback failed"))
        failure = UnhandledError(f"{text}: {error!r}")
        failure.__cause__ = error
        self.fail(failure)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """The same."""
        self.call_exception_handler(context)

    async def shutdown_asyncgens(self) -> None:
        """Generators end with the run."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """There is none."""

    # What the simulation does.

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until a coroutine ends; everything that happens until then is the seed's."""
        self._running = True
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=lambda _: None, finalizer=lambda _: None)
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main, name="main")
            while not task.done():
                self._step()
            self._raise_failure()
            answer: T = task.result()
            return answer
        finally:
            self._dispose()
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self._running = False

    def fail(self, error: BaseException) -> None:
        """End the run with this error when the present step is over; the first one counts."""
        if self._failure is None:
            self._failure = error

    def resume(self, process: Process) -> None:
        """End a process's pause: what had been waiting is ready."""
        if process.life is Life.PAUSED:
            process.life = Life.RUNNING
            self._ready.extend(process.held)
            process.held.clear()

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        ready = self._ready
        at = int(self._rng.random() * len(ready))
        entry = ready[at]
        ready[at] = ready[-1]
        ready.pop()
        handle, process = entry
        if handle.cancelled():
            return
        if process is not None and process.life is not Life.RUNNING:
            if process.life is Life.PAUSED:
                process.held.append(entry)
            return
        self.steps += 1
        self._since_jump += 1
        handle._run()
        if process is not None:
            process.stepped()
        self._raise_failure()
        if self._since_jump > INSTANT_LIMIT:
            raise SpinError(f"{INSTANT_LIMIT} callbacks at {self._now:.3f} s\n{self.describe()}")
        if self._step_limit and self.steps >= self._step_limit:
            raise StepLimitError(f"{self.steps} steps at {self._now:.3f} s\n{self.describe()}")

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise DeadlockError(f"nothing is due at {self._now:.3f} s\n{self.describe()}")
        self._since_jump = 0
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            _, _, timer, process = heapq.heappop(timers)
            if not timer.cancelled():
                self._ready.append((timer, process))

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def describe(self) -> str:
        """The tasks that have not ended, and where each of them waits."""
        alive = [process for process in self._processes if process.alive]
        tasks = [*unfinished(self._tasks), *(task for p in alive for task in p.unfinished())]
        return "\n".join(f"  {_where(task)}" for task in tasks) or "  no tasks"

    def _dispose(self) -> None:
        """Let go of what has not ended, so that no subscriber is told about it later."""
        everybody = [process.unfinished() for process in self._processes]
        for task in [*unfinished(self._tasks), *(task for tasks in everybody for task in tasks)]:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            # Clean-up wants to go on, and there has no identity left to whom its failures matter.
            with contextlib.suppress(BaseException):
                task.get_coro().close()


def virtual_loop(seed: int | str, *, step_limit: int = 0) -> VirtualLoop:
    """A loop whose order follows from a seed."""
    # Sockets, signals and subprocesses are missing on purpose: nothing here may use them.
    return VirtualLoop(Random(seed), step_limit=step_limit)  # type: ignore[abstract]


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return f"{task.get_name()}: not started"
    code = frames[-1].f_code
    return f"{task.get_name()}: {code.co_qualname} at {code.co_filename}:{frames[-1].f_lineno}"
