"""Calls of a substrate: limits, classes, retries, credentials, metrics."""

import asyncio
import random

import pytest

from bigfleet_providerkit import (
    Ambiguous,
    Gone,
    OutOfCapacity,
    Retryable,
    Runtime,
    SubstrateError,
    Unauthorized,
    VirtualClock,
)
from bigfleet_providerkit.calls.caller import Caller
from bigfleet_providerkit.calls.limiter import FULL_RATE, Limiter
from bigfleet_providerkit.calls.retry import Budget, budget, pause_before
from bigfleet_providerkit.clock import inline
from bigfleet_providerkit.http.metrics import Metrics


class Cloud:
    """An SDK that fails as told."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def call(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def classify(error: BaseException) -> SubstrateError | None:
    return OutOfCapacity(str(error)) if isinstance(error, LookupError) else None


def made() -> tuple[Caller, VirtualClock, Metrics]:
    clock, metrics = VirtualClock(), Metrics(("Run",))
    return (
        Caller(Runtime(clock, random.Random(3), inline), metrics, classify, ("Run",)),
        clock,
        metrics,
    )


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"bigfleet_provider_{name}", labels) or 0.0


async def finished(clock: VirtualClock, task: "asyncio.Task[str]") -> None:
    await clock.until(task.done)


async def test_a_retryable_call_is_repeated_and_counted() -> None:
    caller, clock, metrics = made()
    cloud = Cloud(ConnectionResetError("gone"), Retryable("slow", throttled=True, after=7))
    task = asyncio.ensure_future(caller.awaiting("Run", cloud.call))
    await finished(clock, task)
    assert (task.result(), cloud.calls) == ("done", 3)
    assert clock.monotonic() >= 7
    assert value(metrics, "api_retries_total", op="Run") == 2
    assert value(metrics, "api_throttles_total", op="Run") == 1
    assert value(metrics, "api_calls_total", op="Run", outcome="throttled") == 1
    assert value(metrics, "api_calls_total", op="Run", outcome="success") == 1


async def test_a_final_class_is_raised_at_once() -> None:
    caller, _, metrics = made()
    with pytest.raises(OutOfCapacity, match="none"):
        await caller.awaiting("Run", Cloud(LookupError("none")).call)
    assert value(metrics, "api_calls_total", op="Run", outcome="out_of_capacity") == 1


async def test_credentials_are_renewed_once() -> None:
    caller, _, _ = made()
    renewed: list[int] = []

    async def renew() -> None:
        renewed.append(1)

    caller.renew = renew
    assert await caller.awaiting("Run", Cloud(Unauthorized("old")).call) == "done"
    with pytest.raises(Unauthorized):
        await caller.awaiting("Run", Cloud(Unauthorized("a"), Unauthorized("b")).call)
    assert len(renewed) == 2


async def test_tries_share_the_time_of_their_transition() -> None:
    caller, clock, _ = made()
    budget.set(Budget(0.0, 10.0))
    cloud = Cloud(*(Retryable("busy") for _ in range(100)))
    task = asyncio.ensure_future(caller.awaiting("Run", cloud.call))
    await finished(clock, task)
    assert isinstance(task.exception(), Retryable)
    assert clock.monotonic() <= 9.0


@pytest.mark.parametrize(
    "problem",
    [
        TimeoutError("no answer"),
        ConnectionResetError("reset"),
        Retryable("502 bad gateway"),
        ValueError("the answer has another shape"),
    ],
)
async def test_a_call_that_is_sent_once_is_not_repeated_when_its_answer_was_lost(
    problem: Exception,
) -> None:
    caller, clock, _ = made()
    cloud = Cloud(problem)
    await clock.advance(3.0)
    with pytest.raises(Ambiguous) as raised:
        await caller.awaiting("Run", cloud.call, once=True)
    assert (cloud.calls, raised.value.sent_monotonic_s) == (1, 3.0)


def wrapped(error: Exception) -> Exception:
    """As SDKs do it: the socket's error inside their own."""
    return RuntimeError("max retries exceeded", RuntimeError("connection failed", error))


@pytest.mark.parametrize(
    "problem",
    [
        ConnectionRefusedError("nothing listens"),
        wrapped(ConnectionRefusedError("nothing listens")),
        Retryable("slow down", throttled=True),
        Retryable("locked by another action", refused=True),
    ],
)
async def test_a_call_that_is_sent_once_is_repeated_when_it_certainly_did_nothing(
    problem: Exception,
) -> None:
    caller, clock, _ = made()
    cloud = Cloud(problem)
    task = asyncio.ensure_future(caller.awaiting("Run", cloud.call, once=True))
    await finished(clock, task)
    assert (task.result(), cloud.calls) == ("done", 2)


async def test_gone_counts_as_a_success_of_the_call() -> None:
    caller, _, metrics = made()
    with pytest.raises(Gone):
        await caller.awaiting("Run", Cloud(Gone("x")).call)
    assert value(metrics, "api_calls_total", op="Run", outcome="success") == 1


async def test_a_blocking_call_leaves_the_loop_alone() -> None:
    caller = Caller(Runtime(), Metrics(), classify, ("Run",))
    assert await caller.blocking("Run", lambda: 7) == 7
    caller.close()


async def test_a_throttle_halves_the_rate_which_grows_back() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    limiter.throttled()
    assert limiter.rate == pytest.approx(FULL_RATE / 2)
    await clock.advance(60)
    assert limiter.rate == pytest.approx(FULL_RATE / 2 * 1.1)
    await clock.advance(3600)
    assert limiter.rate == FULL_RATE


def test_pauses_grow_with_full_jitter_up_to_thirty_seconds() -> None:
    runtime = Runtime(VirtualClock(), random.Random(5), inline)
    for attempt, longest in ((0, 0.5), (1, 1.0), (5, 16.0), (6, 30.0), (50, 30.0)):
        pauses = [pause_before(runtime, attempt, Retryable("x")) for _ in range(200)]
        assert min(pauses) >= 0
        assert longest / 2 < max(pauses) <= longest
    assert pause_before(runtime, 0, Retryable("x", after=99.0)) == 99.0


async def test_a_call_that_was_not_declared_is_refused_by_name() -> None:
    caller, _, _ = made()

    async def work() -> None:
        return

    with pytest.raises(ValueError, match=r"'Runn' is not declared; add it to ProviderSpec\.calls"):
        await caller.awaiting("Runn", work)
