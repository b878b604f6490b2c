"""One seed from beginning to end: trouble, peace, a look at what came of it, and rest.

trouble   the workload moves and the faults of the plan happen
peace     faults end; by the end of it everything must have come right
rest      nothing changes any more, so nothing may be done any more
the end   the shard is asked to stop, and leaves nothing running
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TextIO

from sim.drawing import Plan, draw
from sim.loop import SimulationError, virtual_loop
from sim.settled import Settled
from sim.trace import InvariantError, Trace
from sim.world import Build, World

LEAST_PEACE_SECONDS: Final = 180.0
MOST_PEACE_SECONDS: Final = 1200.0
"""Drains alone may take ten minutes of grace."""
REST_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 60.0
STEP_LIMIT: Final = 30_000_000
_TIDY_SECONDS: Final = 60.0
_CHATTER: Final = frozenset({"shortfalls detected", "reclaim blast-radius cap engaged"})
"""Said with every cycle as long as it is so."""


@dataclass(frozen=True)
class Result:
    """How a seed went."""

    plan: Plan
    digest: str
    steps: int
    events: int
    wall_seconds: float
    cpu_seconds: float
    orders: dict[str, int]
    lives: int
    failure: str = ""
    recent: tuple[str, ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether nothing was broken."""
        return not self.failure

    def report(self) -> str:
        """For a person: what was broken, what led to it, and how to see it again."""
        if self.ok:
            return f"{self.plan.describe()}: {self.steps} steps, {self.lives} lives, fine"
        lines = [
            f"{self.plan.describe()}: BROKEN at step {self.steps}",
            f"  {self.failure}",
            *(f"  fault: {fault}" for fault in self.plan.faults),
            *(f"    {line}" for line in self.recent),
            f"  again: make dst SEEDS=1 BASE={self.plan.seed}",
        ]
        return "\n".join(lines)


def run_seed(seed: int, build: Build, sink: TextIO | None = None) -> Result:
    """Draw a seed and run it."""
    return run_plan(draw(seed), build, sink)


def run_plan(plan: Plan, build: Build, sink: TextIO | None = None) -> Result:
    """Run a plan."""
    loop = virtual_loop(f"order-{plan.seed}", step_limit=STEP_LIMIT)
    trace = Trace(loop, sink)
    begun, cpu = time.perf_counter(), time.process_time()
    worlds: list[World] = []
    failure = ""

    async def main() -> None:
        worlds.append(World(plan, loop, trace, build))
        await _story(worlds[0])

    with _tidy_memory(), _listening(trace):
        try:
            loop.run(main())
        except (InvariantError, SimulationError) as error:
            failure = f"{type(error).__name__} {error}"
    recent = tuple(trace.recent)
    world = worlds[0]
    trace.note("end", f"{loop.steps} steps")
    return Result(
        plan=plan,
        digest=trace.digest,
        steps=loop.steps,
        events=trace.events,
        wall_seconds=time.perf_counter() - begun,
        cpu_seconds=time.process_time() - cpu,
        orders=dict(sorted(world.monitor.counts.items())),
        lives=len(world.lives),
        failure=failure,
        recent=recent,
    )


async def _story(world: World) -> None:
    plan, trace = world.plan, world.trace
    world.start_shard()
    async with asyncio.TaskGroup() as group:
        tidying = group.create_task(_tidy(), name="tidy")
        clusters = world.start_clusters(group)
        faults = group.create_task(world.injector.run(plan.faults), name="faults")
        await asyncio.sleep(plan.seconds)
        faults.cancel()
        world.peace()
        await _settle(world)
        before = sum(count for kind, count in world.monitor.counts.items() if kind != "Delete")
        await asyncio.sleep(REST_SECONDS)
        after = sum(count for kind, count in world.monitor.counts.items() if kind != "Delete")
        if after != before:
            trace.broken("L3", f"{after - before} orders although nothing changes")
        await _stop(world)
        for task in (*clusters, tidying):
            task.cancel()


async def _settle(world: World) -> None:
    """Wait until everything has come right, which must not take for ever."""
    loop = world.loop
    latest = loop.time() + MOST_PEACE_SECONDS
    await asyncio.sleep(LEAST_PEACE_SECONDS)
    while (complaint := Settled(world).complaint()) is not None:
        if loop.time() >= latest:
            world.trace.broken(*complaint)
        await asyncio.sleep(_LOOK_SECONDS)
    world.trace.note("world", f"settled {loop.time() - latest + MOST_PEACE_SECONDS:.0f} s later")


async def _stop(world: World) -> None:
    process = world.shard.process
    world.stop_shard()
    await asyncio.sleep(60.0)
    left = [task.get_name() for task in process.unfinished()]
    if left:
        world.trace.broken("L4", f"{process.name} leaves tasks behind: {', '.join(left)}")
        await asyncio.sleep(1.0)


async def _tidy() -> None:
    """Collect garbage at times that follow from the seed, and at no others."""
    for _ in iter(int, 1):
        await asyncio.sleep(_TIDY_SECONDS)
        gc.collect()


@contextlib.contextmanager
def _tidy_memory() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


class _Listener(logging.Handler):
    """Errors that product code caught and did not expect break the run."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.WARNING)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in _CHATTER:
            self._trace.note("log", f"{record.levelname} {message}")
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            self._trace.broken("log", f"{record.getMessage()}: {error!r}")


@contextlib.contextmanager
def _listening(trace: Trace) -> Iterator[None]:
    logger, listener = logging.getLogger("bigfleet"), _Listener(trace)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagate
