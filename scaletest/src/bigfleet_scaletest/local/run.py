"""One run on this machine: setup, fill, settle, soak, verdict, and everything ended afterwards.

Processes belong to two supervisors: one for the system, one for the load driver, which starts when
the shards can be reached. The fill ends in a steady state: all clusters connected, all demand
acknowledged, nothing unmet and nothing acquired for three looks. A partial summary is written all
the time, so that also a run that is killed leaves one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from bigfleet.cli.errors import FailureError
from bigfleet_lab.demo.supervisor import Supervisor
from bigfleet_scaletest.local.domains import assign_domains, write_probes
from bigfleet_scaletest.local.faults import BEFORE_SECONDS, FaultRunner
from bigfleet_scaletest.local.layout import LOAD, LocalLayout
from bigfleet_scaletest.local.scrape import FleetScraper
from bigfleet_scaletest.record.measure import MeasuredWindow
from bigfleet_scaletest.record.samples import FleetSample, total

Say = Callable[[str], None]
_UP_SECONDS: Final = 300.0
_FLAT_LOOKS: Final = 3
_STUCK_LOOKS: Final = 12
_RARE_SECONDS: Final = 5.0
_OFTEN_SECONDS: Final = 1.0
_AFTER_SECONDS: Final = 180.0
_LOAD_FLOOR: Final = 0.999


class RunBrokenError(FailureError):
    """The run could not come to its end."""


@dataclass
class LocalRun:
    """A run, as far as it came."""

    layout: LocalLayout
    say: Say
    checkpoint: Callable[[], None]
    """Writes a partial summary."""
    samples: list[FleetSample] = field(default_factory=list)
    phase: str = "setup"
    soak_unix_s: float = 0.0
    settled_unix_s: float = 0.0
    ended_unix_s: float = 0.0
    faults: FaultRunner | None = None
    early_end: str = ""
    _scraper: FleetScraper = field(init=False)
    _system: Supervisor = field(init=False)
    _load: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self._scraper = FleetScraper(self.layout)
        self._system = Supervisor(self.layout.parts(), self.layout.log, self.say)
        self._load = Supervisor((self.layout.load(),), self.layout.log, self.say)

    @property
    def cycles(self) -> list[dict[str, Any]]:
        """Every cycle that was seen."""
        return self._scraper.cycles

    async def run(self, stop: asyncio.Event) -> None:
        """All of it; RunBrokenError where it does not come to its end."""
        async with _kept_alive(self._system, stop) as system:
            self._enter("setup")
            await self._while_alive(system, self._set_up())
            async with _kept_alive(self._load, stop) as load:
                work = asyncio.ensure_future(self._phases())
                await self._first(work, system, load)

    async def _first(self, work: asyncio.Future[None], *lives: asyncio.Task[None]) -> None:
        """The work, unless something that must live ends before it."""
        await asyncio.wait((work, *lives), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        for life in lives:
            if life.done():
                life.result()
        raise RunBrokenError(f"interrupted in the phase {self.phase}")

    async def _while_alive(self, life: asyncio.Task[None], work: Any) -> None:
        try:
            await self._first(asyncio.ensure_future(work), life)
        except TimeoutError:
            raise RunBrokenError(f"not everything could be reached in {_UP_SECONDS:g} s") from None

    async def _set_up(self) -> None:
        await self._system.up(_UP_SECONDS, lambda _: None)
        async with asyncio.timeout(_UP_SECONDS):
            await assign_domains(self.layout)

    async def _phases(self) -> None:
        await self._fill()
        self._enter("settle")
        await self._order_all()
        self.soak_unix_s = time.time()
        load = self.layout.run.profile.load
        self.settled_unix_s = self.soak_unix_s + load.settle_seconds
        await self._soak(load.soak_seconds)
        self.ended_unix_s = time.time()
        self._enter("verdict")

    async def _order_all(self) -> None:
        for provider in self.layout.providers:
            await self._system[provider.name].order({"do": "latency"})
        await self._load[LOAD].order({"do": "soak"})

    # -- fill ------------------------------------------------------------------------------------

    async def _fill(self) -> None:
        self._enter("fill")
        run = self.layout.run
        pause = max(1.0, run.setting("cycleIntervalSeconds"))
        began, flat, stuck, acquired = time.monotonic(), 0, 0, -1.0
        budget = run.profile.ramp_budget_seconds or 900.0
        while flat < _FLAT_LOOKS:
            left = budget - (time.monotonic() - began)
            if left <= 0:
                raise RunBrokenError(f"no steady state within {budget:g} s: {self._state()}")
            await asyncio.sleep(pause)
            await self._look()
            now = self._acquisitions()
            moved, acquired = now != acquired, now
            flat = flat + 1 if self._filled() and not moved else 0
            stuck = stuck + 1 if self._shortfalls() > 0 and not moved else 0
            if stuck >= _STUCK_LOOKS and not run.profile.slo.expect_standing_shortfall:
                raise RunBrokenError(f"stuck with unmet demand: {self._state()}")
            self.say(f"fill: {self._state()}; at most {left:.0f} s left")

    def _filled(self) -> bool:
        load = self.samples[-1].load
        expecting = self.layout.run.profile.slo.expect_standing_shortfall
        connected = bool(load) and sum(load["sessions"].values()) == load["clusters"]
        active = bool(load) and load["active"] >= _LOAD_FLOOR * load["target"]
        met = self._shortfalls() > 0 if expecting else self._shortfalls() == 0
        return connected and active and met and self._sum("bigfleet_shard_demand_machines") > 0

    def _sum(self, name: str, label: str = "") -> float:
        processes = self.samples[-1].processes
        found = [total(processes.get(each.name, {}), name, label) for each in self.layout.shards]
        return sum(each for each in found if each is not None)

    def _shortfalls(self) -> float:
        return self._sum("bigfleet_shard_shortfalls")

    def _acquisitions(self) -> float:
        name = "bigfleet_shard_actions_total"
        return self._sum(name, 'kind="Bootstrap"') + self._sum(name, 'kind="Provision"')

    def _state(self) -> str:
        load = self.samples[-1].load if self.samples else {}
        machines = self._sum("bigfleet_shard_inventory_machines", 'state="Configured"')
        return (
            f"{sum(load.get('sessions', {}).values())}/{load.get('clusters', 0)} clusters, "
            f"{load.get('bound', 0):,}/{load.get('target', 0):,} pods bound, "
            f"{machines:,.0f} machines Configured, {self._shortfalls():.0f} rows unmet"
        )

    # -- soak ------------------------------------------------------------------------------------

    async def _soak(self, seconds: float) -> None:
        profile = self.layout.run.profile
        self.faults = FaultRunner(
            self.layout, self._system, self.samples, lambda: self.cycles, self._scraper.restarted
        )
        waiting = sorted(profile.actions, key=lambda each: each.at_seconds)
        tasks: list[asyncio.Task[None]] = []
        writing = asyncio.create_task(write_probes(self.layout))
        end = self.soak_unix_s + seconds
        try:
            while (now := time.time()) < end:
                while waiting and now >= self.soak_unix_s + waiting[0].at_seconds:
                    action = waiting.pop(0)
                    self.say(f"action: {action.action}")
                    tasks.append(asyncio.create_task(self.faults.carry_out(action)))
                if self.phase == "settle" and now >= self.settled_unix_s:
                    self._enter("soak")
                await self._look()
                self.say(f"{self.phase}: {self._state()}; {max(0.0, end - now):.0f} s left")
                await self._pause(now, end)
            await asyncio.gather(*tasks)
        finally:
            for task in (writing, *tasks):
                task.cancel()
            await asyncio.gather(writing, *tasks, return_exceptions=True)
        await self._look()

    async def _pause(self, now: float, end: float) -> None:
        pause = _RARE_SECONDS
        for action in self.layout.run.profile.actions:
            at = self.soak_unix_s + action.at_seconds
            if at - BEFORE_SECONDS - _RARE_SECONDS <= now <= at + _AFTER_SECONDS:
                pause = _OFTEN_SECONDS
            elif now < at:
                pause = min(pause, at - now)
        taken = time.time() - now
        await asyncio.sleep(max(0.05, min(pause - taken, end - time.time())))

    async def _look(self) -> None:
        self.samples.append(await self._scraper.sample())
        await self._scraper.read_cycles()

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.say(f"phase: {phase}")
        self.checkpoint()

    def window(self) -> MeasuredWindow:
        """The measured part of the run."""
        run, at = self.layout.run, self.layout
        return MeasuredWindow(
            profile=run.profile,
            plan=run.fleet,
            began_unix_s=self.settled_unix_s,
            soak_unix_s=self.soak_unix_s,
            ended_unix_s=self.ended_unix_s,
            samples=self.samples,
            cycles=self.cycles,
            shards=tuple(each.name for each in at.shards),
            coordinators=tuple(each.name for each in at.coordinators),
            providers=tuple(each.name for each in at.providers),
            disturbed_unix_s=tuple(self._disturbed()),
            actions_measured=dict(self.faults.measured) if self.faults else {},
        )

    def _disturbed(self) -> list[tuple[str, float]]:
        fired = self.faults.fired if self.faults else []
        return [(name.removeprefix("kill-shard-"), at) for name, at in fired]


@asynccontextmanager
async def _kept_alive(
    supervisor: Supervisor, stop: asyncio.Event
) -> AsyncIterator[asyncio.Task[None]]:
    """Its processes run inside of the block, and none of them after it."""
    ending = asyncio.Event()

    async def either() -> None:
        await stop.wait()
        ending.set()

    watching = asyncio.create_task(either())
    life = asyncio.create_task(supervisor.run(ending))
    try:
        yield life
    finally:
        ending.set()
        watching.cancel()
        with contextlib.suppress(FailureError):
            await life
