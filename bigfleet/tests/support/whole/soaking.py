"""Tens of thousands of cycles of churn on one shard, and what must hold at their end.

Every few cycles a cluster comes with a roll-up drawn at random, every 35 one withdraws all it
asked for. When the cycles are over everybody withdraws: then every machine must have come home,
nothing may wait, and no memory may have grown since the warm-up.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from bigfleet.observe.cycles import CycleRecord
from bigfleet.shard.decide.cycle import DecisionCycle
from bigfleet_lab.simcluster.behaviour import Behaviour, Span
from bigfleet_lab.simcluster.generator import Mix
from sim.drawing import ClusterPlan, Plan
from sim.loop import VirtualLoop
from sim.monitor import Monitor
from sim.provider import ModelProvider
from sim.slots import FIXED, S, Slot
from sim.trace import Trace
from sim.world import Build, World
from whole.census import census, grown
from whole.living import Setting, Whole, live, provider

SEED: Final = 0xCAFEBABE
CYCLES: Final = 50_000
IDLE: Final = 1_000
SPECULATIVE: Final = 2_000
CLUSTERS: Final = 50
ROLLUP_EVERY: Final = 5
WITHDRAWAL_EVERY: Final = 35
HOME_SECONDS: Final = 7_200.0
"""Everything is withdrawn at once, and a cap of one in twenty per ten seconds lets go of it."""
_BOUNDED: Final = ("cycles._records", "decisions._ring", "._blob")
"""Rings that are not full at the warm-up of a short run, and texts that are squeezed now and then.
"""


@dataclass(frozen=True)
class Soak:
    """How long, how large, and what growth is let pass."""

    cycles: int = CYCLES
    warm_up: int = 22_000
    """Cycles before memory is looked at: by then the rings of 20,000 are full."""
    idle: int = IDLE
    speculative: int = SPECULATIVE
    clusters: int = CLUSTERS
    seed: int = SEED
    slack: int = 2_000
    """Elements by which one memory may differ between two moments of the same churn."""


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    cycles: int
    virtual_hours: float
    wall_seconds: float
    cpu_seconds: float
    resident_before: int
    resident_after: int
    most_waiting: int
    actions: dict[str, int]
    unforced: float
    complaints: tuple[str, ...]

    @property
    def per_second(self) -> float:
        """Cycles per second of one core."""
        return self.cycles / self.cpu_seconds

    @property
    def growth(self) -> float:
        """Of the process since the warm-up, as a share."""
        return self.resident_after / self.resident_before - 1.0


class _ShortMemory(Monitor):
    """Eyes that remember of each machine the clusters it was bound to last, and no others."""

    def changed(self, provider: ModelProvider, slot: Slot) -> None:
        """A slot changed."""
        if slot.cluster:
            known = self._bound_once.setdefault(slot.id, set())
            if len(known) > 2 and slot.cluster not in known:
                known.clear()
            known.add(slot.cluster)


class _World(World):
    """A world that does not grow by being looked at."""

    def __init__(self, plan: Plan, loop: VirtualLoop, trace: Trace, build: Build) -> None:
        super().__init__(plan, loop, trace, build)
        self.monitor = _ShortMemory(trace)
        for model in self.providers.values():
            model.watch = self.monitor


class _Churn:
    """Moves demand with the cycles of a shard, and watches what waits."""

    def __init__(self, whole: Whole, soak: Soak, note: Callable[[str], None]) -> None:
        self._whole, self._soak, self._note = whole, soak, note
        self._rng = Random(soak.seed)
        self._names = sorted(whole.world.operators)
        self._most = {
            name: [operator.cluster.workload.replicas(w) for w in operator.cluster.workload.names]
            for name, operator in whole.world.operators.items()
        }
        self.cycles = 0
        self.most_waiting = 0
        self.done = asyncio.Event()
        self.resident = 0
        self.sizes: dict[str, int] = {}

    def follow(self, cycle: DecisionCycle) -> None:
        """From now on every cycle of the shard is noticed."""
        once = cycle.once

        async def noticed(trigger: str) -> CycleRecord | None:
            record = await once(trigger)
            self._finished()
            return record

        cycle.once = noticed  # type: ignore[method-assign]

    def _finished(self) -> None:
        if self.done.is_set():
            return
        self.cycles += 1
        executor = self._whole.shard.executor
        self.most_waiting = max(self.most_waiting, executor.depth + executor.inflight)
        if self.cycles % WITHDRAWAL_EVERY == 0:
            self._whole.scale(0, self._rng.choice(self._names))
        elif self.cycles % ROLLUP_EVERY == 0:
            self._roll_up(self._rng.choice(self._names))
        if self.cycles == self._soak.warm_up:
            self.sizes, self.resident = look(self._whole), resident()
        if self.cycles % 1_000 == 0:
            self._note(f"{self.cycles} cycles, {resident() / 1e6:.0f} MB")
        if self.cycles >= self._soak.cycles:
            self.done.set()

    def _roll_up(self, name: str) -> None:
        workload = self._whole.operator(name).cluster.workload
        for what, most in zip(workload.names, self._most[name], strict=True):
            gang = bool(workload[what].group)
            workload.scale(
                what, self._rng.choice((0, most)) if gang else self._rng.randint(0, most)
            )


def run(soak: Soak, note: Callable[[str], None] = lambda text: None) -> Soaked:
    """All of it; real time, virtual time, and every complaint."""
    ours = logging.getLogger("bigfleet")
    level = ours.level
    setting = Setting(
        providers=[provider("p1", soak.idle, soak.speculative)],
        clusters=[_cluster(number, soak) for number in range(soak.clusters)],
        world=_World,
        seed=soak.seed,
    )
    # Every cycle under the cap says so.
    ours.setLevel(logging.ERROR)
    try:
        return live(setting, lambda whole: _story(whole, soak, note))
    finally:
        ours.setLevel(level)


def _cluster(number: int, soak: Soak) -> ClusterPlan:
    behaviour = Behaviour(
        rollup_seconds=60.0, join_seconds=Span(1.0, 5.0), evict_seconds=Span(0.5, 5.0)
    )
    mix = Mix(
        cpus=(500, 1_000, 2_000, 4_000), replicas=(1, 10), zones=("z-a", "z-b", "z-c"), gangs=0.1
    )
    drawn = ClusterPlan(
        f"c{number:02d}", soak.seed + number, 8, mix, 1.0, behaviour, number * 0.5, ()
    )
    workload = drawn.workload()
    cpus = sum(w.request["cpu"] / 1000 * workload.replicas(w.name) for w in workload)
    # Together they may ask for a third more than there is; on average it is two thirds of it.
    share = 4 * (soak.idle + soak.speculative) * 1.33 / soak.clusters
    return replace(drawn, scale=share / cpus)


async def _story(whole: Whole, soak: Soak, note: Callable[[str], None]) -> Soaked:
    begun, cpu = time.perf_counter(), time.process_time()
    churn = _Churn(whole, soak, note)
    churn.follow(whole.shard.cycle)
    await churn.done.wait()
    sizes, after = look(whole), resident()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    complaints = [
        f"{path} grew: {by}" for path, by in grown(churn.sizes, sizes, soak.slack).items()
    ]
    for name in whole.world.operators:
        whole.scale(0, name)
    for _ in range(int(HOME_SECONDS / 60.0)):
        if not _away(whole):
            break
        await asyncio.sleep(60.0)
    complaints += _away(whole)
    complaints += _waiting(whole)
    return Soaked(
        cycles=churn.cycles,
        virtual_hours=whole.loop.time() / 3600,
        wall_seconds=seconds,
        cpu_seconds=cpu,
        resident_before=churn.resident,
        resident_after=after,
        most_waiting=churn.most_waiting,
        actions=dict(whole.world.monitor.counts),
        unforced=whole.metric("reclaims_unforced_total"),
        complaints=tuple(complaints),
    )


def look(whole: Whole) -> dict[str, int]:
    """Sizes of all memories of the shard."""
    gc.collect()
    return census(whole.shard, apart=_BOUNDED)


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _away(whole: Whole) -> list[str]:
    """Machines that have not come home, at the provider or in the shard's book."""
    found, book = [], whole.shard.book
    for slot in whole.provider.slots.values():
        home = S.IDLE if slot.offer.capacity_type in FIXED else S.SPECULATIVE
        known = book.get(slot.id)
        if slot.state is not home or slot.cluster:
            found.append(f"{slot.id} is {slot.state.title} {slot.cluster}")
        elif known is None or known.state is not home or known.stamp is not None:
            found.append(f"{slot.id} is at home, and the shard says {known}")
    return found[:20]


def _waiting(whole: Whole) -> list[str]:
    """Queues that should be empty."""
    shard = whole.shard
    found = {
        "actions": shard.executor.depth + shard.executor.inflight,
        "machines in transition": len(shard.book.moving_since()),
        "machines with a line in the journal": sum(map(shard.journal.knows, whole.provider.slots)),
    }
    return [f"{count} {what} are left" for what, count in found.items() if count]
