"""`bigfleet simulate cluster`: many clusters against a running shard, and what came of it.

The command line gives the options and prints; here is everything in between: the fleet over gRPC,
a line of progress now and then, and the end. A signal, or the end of
the duration, closes every session in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import uvloop

from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.demand_changes import Curve
from bigfleet_lab.simcluster.errors import RunError
from bigfleet_lab.simcluster.fleet import SimFleet
from bigfleet_lab.simcluster.generator import Mix
from bigfleet_lab.simcluster.lines import GrpcDial, credentials_from
from bigfleet_lab.simcluster.ports import Dial
from bigfleet_lab.simcluster.summary import Summary, progress, summarise

Say = Callable[[str], None]
_PROGRESS_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line asks for."""

    shard: str
    clusters: int = 10
    rows: int = 20
    interval_seconds: float = 10.0
    seed: int = 1
    duration_seconds: float | None = None
    """None runs until a signal."""
    prefix: str = "sim"
    churn: float = 0.02
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    mix: Mix = field(default_factory=Mix)
    behaviour: Behaviour = field(default_factory=Behaviour)
    curve: Curve = ()

    def __post_init__(self) -> None:
        wrong = (
            (not self.shard, "--shard is empty: give it host:port"),
            (self.clusters < 1, f"--clusters {self.clusters}: use one or more"),
            (self.rows < 0, f"--rows {self.rows}: use zero or more"),
            (self.interval_seconds <= 0, f"--interval {self.interval_seconds}: use more than 0 s"),
            (
                self.duration_seconds is not None and self.duration_seconds <= 0,
                f"--duration {self.duration_seconds}: use more than 0 s, or leave it out",
            ),
            (not 0 <= self.churn <= 1, f"--churn {self.churn}: use a share from 0 to 1"),
        )
        for refused, words in wrong:
            if refused:
                raise RunError(words)


def run(options: RunOptions, say: Say) -> Summary:
    """The whole run. `say` takes lines of progress."""
    return uvloop.run(simulate(options, say))


async def simulate(options: RunOptions, say: Say, dial: Dial | None = None) -> Summary:
    """The same inside an event loop; SIGINT and SIGTERM end it in order."""
    own = dial is None
    calling = dial or _dial(options)
    fleet = _fleet(options, calling)
    began, cpu = time.monotonic(), time.process_time()
    try:
        async with _signals() as stop:
            running = asyncio.create_task(fleet.run(options.interval_seconds, options.curve))
            try:
                await _watch(fleet, running, stop, options.duration_seconds, say)
                # What they have is looked at while they have it.
                return summarise(fleet, time.monotonic() - began, time.process_time() - cpu)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
    finally:
        if own:
            await calling.close()


def _dial(options: RunOptions) -> GrpcDial:
    credentials, per_cluster = credentials_from(options.tls_cert, options.tls_key, options.tls_ca)
    return GrpcDial(options.shard, credentials, per_cluster=per_cluster)


def _fleet(options: RunOptions, dial: Dial) -> SimFleet:
    behaviour = replace(
        options.behaviour, rollup_seconds=options.interval_seconds, churn=options.churn
    )
    return SimFleet.make(
        dial,
        WallClock(),
        Random(options.seed),
        clusters=options.clusters,
        rows=options.rows,
        behaviour=behaviour,
        mix=options.mix,
        name=lambda number: f"{options.prefix}-{number:04d}",
    )


async def _watch(
    fleet: SimFleet,
    running: asyncio.Task[None],
    stop: asyncio.Event,
    duration: float | None,
    say: Say,
) -> None:
    loop = asyncio.get_running_loop()
    end = None if duration is None else loop.time() + duration
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not (running.done() or stopping.done()):
            left = _PROGRESS_SECONDS if end is None else min(_PROGRESS_SECONDS, end - loop.time())
            if left <= 0:
                return
            await asyncio.wait(
                (running, stopping), timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            say(progress(fleet))
    finally:
        stopping.cancel()
    if running.done():
        # Clusters never end by themselves: this raises what ended them.
        running.result()


@contextlib.asynccontextmanager
async def _signals() -> AsyncIterator[asyncio.Event]:
    """An event that a signal to stop sets. Where signals cannot be had, none comes."""
    stop, loop, taken = asyncio.Event(), asyncio.get_running_loop(), []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop.set)
            taken.append(number)
    try:
        yield stop
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


class WallClock:
    """The real time."""

    def now(self) -> int:
        """Unix nanoseconds."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()
