"""Calls of a substrate: limits, classes, retries, credentials, metrics."""

import asyncio
import contextlib
import random

import pytest

from bigfleet_providerkit import (
    Ambiguous,
    CallRate,
    Gone,
    OptionError,
    OutOfCapacity,
    Retryable,
    Runtime,
    SubstrateError,
    Unauthorized,
    VirtualClock,
)
from bigfleet_providerkit.calls.caller import Caller
from bigfleet_providerkit.calls.limiter import DEFAULT_RATE, Limiter, polling
from bigfleet_providerkit.calls.quotas import limiters_of
from bigfleet_providerkit.calls.retry import Budget, budget, pause_before
from bigfleet_providerkit.clock import inline
from bigfleet_providerkit.errors import NoTurn
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
        Caller(
            Runtime(clock, random.Random(3), inline),
            metrics,
            classify,
            limiters_of(("Run",), {}, clock),
        ),
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


async def test_a_certificate_that_is_not_believed_names_the_clock_whatever_the_sdk() -> None:
    caller, _, metrics = made()
    off = OSError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate is not yet valid")
    with pytest.raises(Unauthorized, match="check this machine's clock"):
        await caller.awaiting("Run", Cloud(off).call)
    assert value(metrics, "api_calls_total", op="Run", outcome="auth") == 1


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
    runtime = Runtime()
    limiters = limiters_of(("Run",), {}, runtime.clock)
    caller = Caller(runtime, Metrics(), classify, limiters)
    assert await caller.blocking("Run", lambda: 7) == 7
    caller.close()


async def served(limiter: Limiter, clock: VirtualClock, calls: int, *, poll: bool = False) -> float:
    """The time that so many calls in a row take."""

    async def all_calls() -> None:
        for _ in range(calls):
            with polling() if poll else contextlib.nullcontext():
                assert await limiter.turn(1e6)

    return await clock.until(asyncio.ensure_future(all_calls()).done)


async def test_one_throttled_call_in_twenty_leaves_the_rate_alone() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    for n in range(1000):
        limiter.answered(throttled=n % 20 == 0)
        await clock.advance(0.02)
    assert limiter.rate == DEFAULT_RATE


async def test_a_throttled_call_lowers_the_rate_and_others_raise_it_again() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    limiter.answered(throttled=True)
    assert limiter.rate == pytest.approx(0.8 * DEFAULT_RATE)
    limiter.answered(throttled=False)
    assert limiter.rate == pytest.approx(1.03 * 0.8 * DEFAULT_RATE)
    for _ in range(7):
        limiter.answered(throttled=False)
    assert limiter.rate == DEFAULT_RATE


async def test_calls_that_were_under_way_together_lower_the_rate_to_a_quarter() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    for _ in range(2):
        began, before = clock.monotonic(), limiter.rate
        await clock.advance(1)
        for _ in range(100):
            limiter.answered(throttled=True, sent_monotonic_s=began)
        assert limiter.rate == pytest.approx(before / 4)


async def test_the_rate_has_a_floor_and_grows_with_time_when_nothing_was_throttled() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    for _ in range(100):
        limiter.answered(throttled=True)
        await clock.advance(1)
    assert limiter.rate == pytest.approx(0.1)
    await clock.advance(59)
    assert limiter.rate == pytest.approx(0.1), "quiet for the time of 15 calls, a minute at most"
    await clock.advance(1)
    assert limiter.rate == pytest.approx(0.11)
    await clock.advance(65)
    assert limiter.rate == DEFAULT_RATE


async def test_a_long_pause_holds_the_whole_bucket_and_a_short_one_does_not() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock)
    limiter.answered(throttled=True, after=4.9)
    assert await served(limiter, clock, 1) == 0.0
    limiter.answered(throttled=True, after=5.0)
    assert await served(limiter, clock, 1) == pytest.approx(5.0)
    assert await served(limiter, clock, 1) > 0.0, "one call goes first, nothing was saved up"


async def test_calls_beyond_the_burst_are_served_in_order_at_the_declared_rate() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock, rate=2.0, burst=5.0)
    assert await served(limiter, clock, 5) == 0.0
    order: list[int] = []

    async def call(number: int) -> None:
        assert await limiter.turn(1e6)
        order.append(number)

    tasks = [asyncio.ensure_future(call(n)) for n in range(10)]
    assert await clock.until(lambda: all(t.done() for t in tasks)) == pytest.approx(5.0)
    assert order == list(range(10))


async def test_a_poll_waits_behind_one_queued_mutation_at_most() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock, rate=1.0)
    order: list[str] = []

    async def call(name: str, *, poll: bool) -> None:
        with polling() if poll else contextlib.nullcontext():
            assert await limiter.turn(1e6)
        order.append(name)

    tasks = [asyncio.ensure_future(call(f"m{n}", poll=False)) for n in range(6)]
    await clock.settle()
    tasks += [asyncio.ensure_future(call(f"p{n}", poll=True)) for n in range(2)]
    await clock.until(lambda: all(t.done() for t in tasks))
    assert order == ["m0", "p0", "m1", "p1", "m2", "m3", "m4", "m5"]


async def test_a_turn_that_does_not_come_in_time_is_given_up_and_takes_no_other_turn() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock, rate=0.1)
    assert await limiter.turn(1e6)
    late = asyncio.ensure_future(limiter.turn(clock.monotonic() + 3.0))
    patient = asyncio.ensure_future(limiter.turn(1e6))
    await clock.advance(3.0)
    assert late.result() is False
    await clock.advance(7.0)
    assert patient.result() is True


async def test_a_call_that_got_no_turn_says_so() -> None:
    caller, clock, _ = made()
    limiters = limiters_of((CallRate(("Run", "Look"), rate=0.001),), {}, clock)
    caller = Caller(Runtime(clock, random.Random(3), inline), Metrics(("Run",)), classify, limiters)
    budget.set(Budget(0.0, 10.0))
    cloud = Cloud()
    assert await caller.awaiting("Run", cloud.call) == "done"
    task = asyncio.ensure_future(caller.awaiting("Look", cloud.call))
    await finished(clock, task)
    assert isinstance(task.exception(), NoTurn)
    assert "Look got no turn: 0.001 calls a second" in str(task.exception())
    assert cloud.calls == 1


def test_rates_can_be_given_by_name_and_a_name_that_is_wrong_is_refused() -> None:
    clock = VirtualClock()
    calls = ("List", CallRate(("Create", "Delete"), 1.0, 3600.0))
    limiters = limiters_of(calls, {"Delete": 4.0}, clock)
    assert limiters["Create"] is limiters["Delete"]
    assert (limiters["Create"].rate, limiters["List"].rate) == (4.0, DEFAULT_RATE)
    with pytest.raises(OptionError, match="no call 'Creat'; choose from Create, Delete, List"):
        limiters_of(calls, {"Creat": 4.0}, clock)
    with pytest.raises(OptionError, match="0 calls a second is not above 0"):
        limiters_of(calls, {"Create": 0.0}, clock)


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
