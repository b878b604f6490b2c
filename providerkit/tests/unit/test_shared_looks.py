"""Looks that many share, and calls that are sent for many at once."""

import asyncio
import itertools
import random
from collections.abc import Sequence

import pytest

from bigfleet_providerkit import Gone, Host, Power, Retryable, Runtime, VirtualClock
from bigfleet_providerkit.calls.batcher import Batcher
from bigfleet_providerkit.calls.caller import Caller
from bigfleet_providerkit.calls.describer import Describer
from bigfleet_providerkit.calls.quotas import limiters_of
from bigfleet_providerkit.clock import inline
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.spec import CallRate, unknown_errors

POLL = 2.0


class Listing:
    """A cloud's list call: which refs it was given, and at what time."""

    def __init__(self, clock: VirtualClock, pages: int = 1, rate: float = 50.0) -> None:
        self.clock = clock
        self.pages = pages
        self.hosts: dict[str, Host] = {}
        self.looks: list[tuple[float, tuple[str, ...]]] = []
        self.errors: list[Exception] = []
        runtime = Runtime(clock, random.Random(1), inline)
        limiters = limiters_of((CallRate(("List",), rate),), {}, clock)
        self.caller = Caller(runtime, Metrics(("List",)), unknown_errors, limiters)
        self.describer = Describer(runtime, POLL)
        self.describer.describe = self.describe

    async def describe(self, refs: Sequence[str]) -> Sequence[Host]:
        self.looks.append((self.clock.monotonic(), tuple(refs)))

        async def page() -> None:
            if self.errors:
                raise self.errors.pop(0)

        for _ in range(self.pages):
            await self.caller.awaiting("List", page)
        return [self.hosts[ref] for ref in refs if ref in self.hosts]


async def test_a_hundred_who_wait_share_one_look_per_poll_interval() -> None:
    clock = VirtualClock()
    listing = Listing(clock)
    listing.hosts = {f"h-{n}": Host(f"h-{n}", power=Power.RUNNING) for n in range(100)}
    tasks = [asyncio.ensure_future(listing.describer.look(f"h-{n}")) for n in range(101)]
    await clock.until(lambda: all(task.done() for task in tasks))
    assert clock.monotonic() == POLL
    assert [len(refs) for _, refs in listing.looks] == [101]
    assert tasks[7].result() == Host("h-7", power=Power.RUNNING)
    assert tasks[100].result() is None


async def test_a_look_that_takes_many_calls_is_taken_less_often() -> None:
    clock = VirtualClock()
    listing = Listing(clock, pages=6, rate=1.0)

    async def wait() -> None:
        for _ in range(4):
            await listing.describer.look("h-1")

    await clock.until(asyncio.ensure_future(wait()).done)
    began = [at for at, _ in listing.looks]
    pauses = [after - before for before, after in itertools.pairwise(began)]
    assert min(pauses) >= 12.0, "six calls a second apart must leave half of the rate to others"


async def test_what_a_look_raises_everyone_gets_and_the_next_look_is_taken() -> None:
    clock = VirtualClock()
    listing = Listing(clock)
    listing.hosts = {"h-1": Host("h-1")}
    listing.errors = [Gone("the project is gone")]
    tasks = [asyncio.ensure_future(listing.describer.look(ref)) for ref in ("h-1", "h-2")]
    await clock.until(lambda: all(task.done() for task in tasks))
    assert all(isinstance(task.exception(), Gone) for task in tasks)
    again = asyncio.ensure_future(listing.describer.look("h-1"))
    await clock.until(again.done)
    assert again.result() == Host("h-1")


async def test_a_look_that_only_cancelled_tasks_waited_for_is_not_taken() -> None:
    clock = VirtualClock()
    listing = Listing(clock)
    task = asyncio.ensure_future(listing.describer.look("h-1"))
    await clock.settle()
    task.cancel()
    await clock.advance(60)
    assert listing.looks == []


class Terminations:
    """A cloud's terminate call for many."""

    def __init__(self, clock: VirtualClock, unknown: str = "") -> None:
        self.clock = clock
        self.unknown = unknown
        self.calls: list[tuple[float, tuple[str, ...]]] = []
        self.error: Exception | None = None

    async def send(self, refs: Sequence[str]) -> None:
        self.calls.append((self.clock.monotonic(), tuple(refs)))
        if self.error is not None:
            raise self.error
        if self.unknown in refs:
            raise Gone(f"there is no {self.unknown}")


async def ended(clock: VirtualClock, cloud: Terminations, refs: Sequence[str]) -> list[object]:
    batcher = Batcher(Runtime(clock, random.Random(1), inline))
    tasks = [asyncio.ensure_future(batcher.add("Terminate", ref, cloud.send)) for ref in refs]
    await clock.until(lambda: all(task.done() for task in tasks))
    return [task.exception() for task in tasks]


async def test_terminations_that_come_together_are_one_call() -> None:
    clock = VirtualClock()
    cloud = Terminations(clock)
    assert await ended(clock, cloud, [f"h-{n}" for n in range(200)]) == [None] * 200
    assert [len(refs) for _, refs in cloud.calls] == [200]
    assert clock.monotonic() == pytest.approx(0.1)


async def test_a_stream_of_terminations_waits_for_a_second_at_most() -> None:
    clock = VirtualClock()
    cloud = Terminations(clock)
    batcher = Batcher(Runtime(clock, random.Random(1), inline))
    tasks = []
    for n in range(40):
        tasks.append(asyncio.ensure_future(batcher.add("Terminate", f"h-{n}", cloud.send)))
        await clock.advance(0.05)
    await clock.until(lambda: all(task.done() for task in tasks))
    assert sum(len(refs) for _, refs in cloud.calls) == 40
    assert [round(at) for at, _ in cloud.calls] == [1, 2]


async def test_one_bad_ref_does_not_spoil_the_others() -> None:
    clock = VirtualClock()
    cloud = Terminations(clock, unknown="h-1")
    first, second, third = await ended(clock, cloud, ["h-0", "h-1", "h-2"])
    assert (first, third) == (None, None)
    assert isinstance(second, Gone)


async def test_an_outage_is_told_to_all_and_not_tried_one_by_one() -> None:
    clock = VirtualClock()
    cloud = Terminations(clock)
    cloud.error = Retryable("503")
    errors = await ended(clock, cloud, ["h-0", "h-1", "h-2"])
    assert all(isinstance(error, Retryable) for error in errors)
    assert len(cloud.calls) == 1
