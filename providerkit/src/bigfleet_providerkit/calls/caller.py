"""The one way to a substrate's API: limit, count, measure, classify, retry.

A call with `once=True` is repeated only after an answer that proves that it did nothing. When the
answer was lost it raises `Ambiguous`, and the launch looks for its effect before it sends another.

Blocking SDK calls run in a bounded pool of threads. A thread that cannot be stopped is abandoned
with its result: the SDK's own connect and read limits bring it back.
"""

import asyncio
import contextvars
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from bigfleet_providerkit.calls.describer import rate_used_s
from bigfleet_providerkit.calls.http_errors import bad_certificate
from bigfleet_providerkit.calls.limiter import Limiter, polls
from bigfleet_providerkit.calls.retry import Budget, budget_now, retrying
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import (
    Ambiguous,
    Gone,
    NoTurn,
    Retryable,
    SubstrateError,
    Unauthorized,
)

T = TypeVar("T")
Classify = Callable[[BaseException], SubstrateError | None]


class CallObserver(Protocol):
    """Who counts calls."""

    def called(self, op: str, outcome: str, seconds: float) -> None:
        """One attempt ended."""
        ...

    def throttled(self, op: str) -> None:
        """The substrate asked to slow down."""
        ...

    def retried(self, op: str) -> None:
        """An attempt is made again."""
        ...


class Caller:
    """Makes calls for one substrate."""

    def __init__(
        self,
        runtime: Runtime,
        observer: CallObserver,
        classify: Classify,
        limiters: Mapping[str, Limiter],
        threads: int = 32,
    ) -> None:
        self._runtime = runtime
        self._observer = observer
        self._classify = classify
        self._limiters = limiters
        self._pool: ThreadPoolExecutor | None = None
        self._threads = threads
        self.renew: Callable[[], Awaitable[None]] | None = None

    async def blocking(self, op: str, work: Callable[[], T], *, once: bool = False) -> T:
        """A call that blocks its thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="api")
        pool = self._pool

        async def in_pool() -> T:
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(pool, lambda: context.run(work))

        return await self.awaiting(op, in_pool, once=once)

    async def awaiting(self, op: str, work: Callable[[], Awaitable[T]], *, once: bool = False) -> T:
        """A call that awaits."""
        renewed = False

        async def attempt() -> T:
            nonlocal renewed
            try:
                return await self._attempt(op, work, once=once)
            except Unauthorized:
                if renewed or self.renew is None:
                    raise
                renewed = True
                await self.renew()
                return await self._attempt(op, work, once=once)

        return await retrying(
            self._runtime, attempt, lambda: self._observer.retried(op), final=(Ambiguous,)
        )

    def close(self) -> None:
        """Let go of the threads; those still at work are not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _attempt(self, op: str, work: Callable[[], Awaitable[T]], *, once: bool) -> T:
        limiter = self._limiters.get(op)
        if limiter is None:
            raise ValueError(f"API call {op!r} is not declared; add it to ProviderSpec.calls")
        limit = budget_now(self._runtime)
        await self._turn(op, limiter, limit)
        sent_before, limit.sent = limit.sent, limit.sent or not polls.get()
        began = self._runtime.clock.monotonic()
        try:
            result = await work()
        except asyncio.CancelledError:
            raise
        except Exception as problem:
            error = self._class_of(op, problem)
            throttled = isinstance(error, Retryable) and error.throttled
            after = error.after if isinstance(error, Retryable) else None
            if isinstance(error, Retryable) and error.refused:
                limit.sent = sent_before
            limiter.answered(throttled=throttled, after=after, sent_monotonic_s=began)
            if throttled:
                self._observer.throttled(op)
            seconds = self._runtime.clock.monotonic() - began
            outcome = "success" if isinstance(error, Gone) else error.outcome
            self._observer.called(op, outcome, seconds)
            if once and may_have_taken_effect(problem, error):
                raise Ambiguous(str(error), began) from problem
            raise error from problem
        limiter.answered(throttled=False, sent_monotonic_s=began)
        self._observer.called(op, "success", self._runtime.clock.monotonic() - began)
        return result

    async def _turn(self, op: str, limiter: Limiter, limit: Budget) -> None:
        if not await limiter.turn(limit.last_try):
            rate = limiter.rate
            raise NoTurn(f"{op} got no turn: {rate:.3g} calls a second are allowed at the moment")
        used = rate_used_s.get()
        if used is not None:
            used.append(1.0 / limiter.rate)

    def _class_of(self, op: str, problem: Exception) -> SubstrateError:
        if isinstance(problem, SubstrateError):
            return problem
        known = bad_certificate(problem) or self._classify(problem)
        return known or Retryable(f"{op}: {type(problem).__name__}: {problem}")


def may_have_taken_effect(problem: BaseException, error: SubstrateError) -> bool:
    """Whether a failed call may have been carried out all the same.

    Time-outs, connections that were reset, 5xx and everything unrecognised may; a connection that
    was refused, a throttled call, any other 4xx and every class of final error did nothing.
    """
    if not isinstance(error, Retryable) or error.refused:
        return False
    return not _connection_was_refused(problem)


def _connection_was_refused(problem: BaseException) -> bool:
    """Looks through the wrappers that SDKs put around the error of the socket."""
    waiting, seen = [problem], set[int]()
    while waiting:
        error = waiting.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
            return True
        inner = (error.__cause__, error.__context__, getattr(error, "reason", None), *error.args)
        waiting += [found for found in inner if isinstance(found, BaseException)]
    return False
