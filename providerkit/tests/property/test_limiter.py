"""For quotas, bursts, latencies and pauses from a wide range: how much of the calls is wasted.

The model of a cloud is obvious: a bucket that holds `burst` calls and gets `quota` a second. Many
callers begin at once, through the same caller as a provider's, at a rate that is declared up to 50
times too high. Time is virtual.
"""

import asyncio
import math
import os
import random
from dataclasses import dataclass

import pytest

from bigfleet_providerkit import CallRate, Retryable, Runtime, VirtualClock
from bigfleet_providerkit.calls.caller import Caller
from bigfleet_providerkit.calls.limiter import DEFAULT_RATE, Limiter
from bigfleet_providerkit.calls.quotas import limiters_of
from bigfleet_providerkit.calls.retry import Budget, budget
from bigfleet_providerkit.clock import inline
from bigfleet_providerkit.http.metrics import Metrics

SEEDS = range(400 if os.environ.get("MODE") == "nightly" else 16)
NO_END_S = 1e6
CALLS = 200
RESTING_SHARE = 0.18
"""The limiter rests where one call in nine is throttled, and swings around that."""


@dataclass
class QuotaModel:
    """A cloud with one bucket of calls; `chance` throttles calls whatever the bucket holds."""

    clock: VirtualClock
    rng: random.Random
    quota: float
    burst: float
    latency_s: float
    tells_pause: bool = False
    chance: float = 0.0
    calls: int = 0
    throttled: int = 0
    filled_monotonic_s: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.burst

    async def call(self) -> None:
        """Half of the latency on the way, half of it back."""
        await self.clock.sleep(self.latency_s * self.rng.uniform(0.25, 0.75))
        answer = self._answer()
        await self.clock.sleep(self.latency_s * self.rng.uniform(0.25, 0.75))
        if answer is not None:
            raise answer

    def _answer(self) -> Retryable | None:
        now = self.clock.monotonic()
        self.calls += 1
        self.left = min(self.burst, self.left + (now - self.filled_monotonic_s) * self.quota)
        self.filled_monotonic_s = now
        empty = self.left < 1.0 - 1e-9
        if not empty and self.rng.random() >= self.chance:
            self.left -= 1.0
            return None
        self.throttled += 1
        pause = math.ceil((1.0 - self.left) / self.quota) if empty and self.tells_pause else None
        return Retryable("too many requests", throttled=True, after=pause)


async def all_called(model: QuotaModel, declared: float, calls: int) -> float:
    """Make so many calls at once, each until it succeeds; the virtual seconds that took."""
    budget.set(Budget(0.0, NO_END_S))
    limiters = limiters_of((CallRate(("Run",), declared),), {}, model.clock)
    runtime = Runtime(model.clock, model.rng, inline)
    caller = Caller(runtime, Metrics(("Run",)), lambda error: None, limiters)
    tasks = [asyncio.ensure_future(caller.awaiting("Run", model.call)) for _ in range(calls)]
    took = await model.clock.until(lambda: all(task.done() for task in tasks), NO_END_S)
    assert [task for task in tasks if task.exception()] == []
    return took


def model_of(seed: int, **given: float | bool) -> QuotaModel:
    """A model on its own clock, with the seed's chance."""
    return QuotaModel(VirtualClock(settle_rounds=8), random.Random(seed), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_rate_declared_too_high_wastes_few_calls_and_little_time(seed: int) -> None:
    draw = random.Random(f"quota {seed}")
    quota = 10 ** draw.uniform(-0.6, 1.0)
    declared = quota * draw.choice([2.0, draw.uniform(1.0, 50.0), 50.0])
    model = model_of(
        seed,
        quota=quota,
        burst=draw.choice([1.0, 10.0, 60.0]),
        latency_s=10 ** draw.uniform(-1.7, 0.0),
        tells_pause=draw.random() < 0.5,
    )
    took = await all_called(model, declared, CALLS)
    # What was sent before an answer could come back is not the limiter's to avoid.
    before_answers = declared * (0.2 + 1.5 * model.latency_s)
    assert model.throttled <= RESTING_SHARE * model.calls + 20 + 1.5 * before_answers, model
    assert took <= 1.6 * max(0.0, CALLS - model.burst) / quota + CALLS / declared + 30, model


@pytest.mark.parametrize("latency_s", [0.03, 0.3])
@pytest.mark.parametrize("tells_pause", [False, True])
async def test_at_fifty_times_the_quota_less_than_a_quarter_of_the_creates_is_throttled(
    latency_s: float, *, tells_pause: bool
) -> None:
    model = model_of(7, quota=1.0, burst=60.0, latency_s=latency_s, tells_pause=tells_pause)
    took = await all_called(model, 50.0, CALLS)
    assert model.throttled <= 0.2 * model.calls, model
    assert took <= 1.05 * (CALLS - model.burst), model


@pytest.mark.parametrize("seed", range(3))
async def test_random_throttling_costs_little_of_the_rate(seed: int) -> None:
    model = model_of(seed, quota=1e6, burst=1e6, latency_s=0.05, chance=0.05)
    took = await all_called(model, DEFAULT_RATE, 1000)
    assert took <= 1.6 * 1000 / DEFAULT_RATE, model


@pytest.mark.parametrize("seed", range(50))
def test_the_rate_stays_between_its_floor_and_what_was_declared(seed: int) -> None:
    draw, clock = random.Random(seed), VirtualClock()
    declared = 10 ** draw.uniform(-2, 2)
    limiter = Limiter(clock, declared)
    share = draw.random()
    for _ in range(500):
        limiter.answered(
            throttled=draw.random() < share,
            after=draw.choice([None, 1.0, 60.0]),
            sent_monotonic_s=clock.monotonic() - draw.uniform(0, 3),
        )
        clock._now += draw.choice([0.0, 0.1, draw.expovariate(0.1)])
        assert min(0.1, declared) <= limiter.rate <= declared
    clock._now += 10_000
    assert limiter.rate == declared
