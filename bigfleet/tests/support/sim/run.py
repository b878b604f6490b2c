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
from sim.settled import unsettled
from sim.trace import InvariantError, Trace
from sim.world import Build, World

LEAST_PEACE_SECONDS: Final = 180.0
MOST_PEACE_SECONDS: Final = 1200.0
"""Drains alone may take ten minutes of grace."""
LONGEST_DRAIN_SECONDS: Final = 660.0
"""A drain that is stuck ends with its grace, and the machine is free soon after."""
REST_SECONDS: Final = 150.0
STOP_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 60.0
STEP_LIMIT: Final = 30_000_000
_TIDY_SECONDS: Final = 120.0
_CHATTER: Final = (
    "shortfalls detected",
    "reclaim blast-radius cap engaged",
    "nothing is taken from clusters until",
)
"""Said with every cycle as long as it is so."""
_OF_A_MOVE: Final = ("move", "tier", "donor", "recipient", "phase", "machines", "reason")


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
    moves: int = 0
    """Between shards, that were carried out."""
    failure: str = ""
    recent: tuple[str, ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether nothing was broken."""
        return not self.failure

    def report(self) -> str:
        """For a person: what was broken, what led to it, and how to see it again."""
        if self.ok:
            moves = f"{self.moves} moves, " if len(self.plan.shards) > 1 else ""
            told = f"{self.steps} steps, {moves}{self.lives} lives, fine"
            return f"{self.plan.describe()}: {told}"
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
        lives=sum(len(host.lives) for host in world.hosts.values()),
        moves=world.moves_done(),
        failure=failure,
        recent=recent,
    )


async def _story(world: World) -> None:
    plan, trace = world.plan, world.trace
    await world.start_fleet()
    async with asyncio.TaskGroup() as group:
        tidying = group.create_task(_tidy(), name="tidy")
        clusters = world.start_clusters(group)
        faults = group.create_task(world.injector.run(plan.faults), name="faults")
        await asyncio.sleep(plan.seconds)
        faults.cancel()
        world.peace()
        await _settle(world)
        before, moves = world.monitor.ordered_count, _moves(world)
        await asyncio.sleep(REST_SECONDS)
        after = world.monitor.ordered_count
        # A shortfall that grows old may still be met by another shard, which is not a disturbance.
        if after != before and _moves(world) == moves:
            trace.broken("L3", f"{after - before} orders although nothing changes")
        await _stop(world)
        for task in (*clusters, tidying):
            task.cancel()


async def _settle(world: World) -> None:
    """Wait until everything has come right, which must not take forever."""
    loop = world.loop
    latest = loop.time() + MOST_PEACE_SECONDS * len(world.hosts)
    await asyncio.sleep(LEAST_PEACE_SECONDS)
    while (complaint := unsettled(world)) is not None:
        for host in world.hosts.values():
            host.help()
        if complaint[0] in ("S14", "L3") and loop.time() < 3 * latest and _go_one_way(world):
            # One machine after the other goes where it is lacked, each after its grace.
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        drained = min(world.monitor.last_order_at, latest) + LONGEST_DRAIN_SECONDS
        if loop.time() >= max(latest, drained, world.phantoms_until + MOST_PEACE_SECONDS / 2):
            world.trace.broken(*complaint)
        await asyncio.sleep(_LOOK_SECONDS)
    world.trace.note("world", "settled")


def _moves(world: World) -> set[str]:
    return set() if world.coordinator is None else {move.id for move in world.coordinator.moves()}


def _go_one_way(world: World) -> bool:
    """Whether machines go from shard to shard, and none goes back."""
    moves = [] if world.coordinator is None else world.coordinator.moves()
    ways = {(move.donor, move.recipient) for move in moves}
    return bool(ways) and not any((recipient, donor) in ways for donor, recipient in ways)


async def _stop(world: World) -> None:
    for host in world.hosts.values():
        host.stop()
    await asyncio.sleep(STOP_SECONDS)
    for host in world.hosts.values():
        process = host.life.process
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
        super().__init__(logging.INFO)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message == "move advanced":
            told = {key: record.__dict__[key] for key in _OF_A_MOVE}
            self._trace.note("move", " ".join(str(value) for value in told.values()))
            return
        if not message.startswith(_CHATTER):
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
    moves = logging.getLogger("bigfleet.coordinator.rebalance.rebalancer")
    moves.setLevel(logging.INFO)
    try:
        yield
    finally:
        moves.setLevel(logging.NOTSET)
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagate
