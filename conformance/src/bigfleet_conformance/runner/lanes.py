"""Lanes: which instance a behaviour looks at, and how that instance is started.

Core always runs. Slow, fault and scale have an instance of their own; the rows of durable, secure
and large boot what they need themselves. A lane that cannot be had makes errors of its rows, with
the reason.
"""

import asyncio
import time
from dataclasses import replace

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import CannotRunError
from bigfleet_conformance.harness.evidence import Evidence
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.probe import Probe, Setting, SlotPool
from bigfleet_conformance.options import Options
from bigfleet_conformance.registry import LaneName
from bigfleet_conformance.results import LaneRecord
from bigfleet_conformance.runner.claims import look
from bigfleet_conformance.runner.source import BootPlan, Source
from bigfleet_conformance.runner.workshop import Workshop

FAULT_SLOTS = 64
FAULT_TIMEOUT_S = 2.0
RECONCILE_S = 0.5
SELF_BOOTING = frozenset({LaneName.DURABLE, LaneName.SECURE, LaneName.LARGE})


class Lanes:
    """The settings of a run by lane."""

    def __init__(
        self,
        core: Setting,
        options: Options,
        workshop: Workshop,
        subject: Source | None,
        slow_link: ChannelLink | None = None,
    ) -> None:
        self.core = core
        self._options = options
        self._workshop = workshop
        self._subject = subject
        self._slow_link = slow_link
        self._opened: dict[LaneName, Setting | CannotRunError] = {LaneName.CORE: core}
        self._began: dict[LaneName, float] = {}
        self._ended: dict[LaneName, float] = {}
        self._boot_s: dict[LaneName, float] = {}
        self._locks = {lane: asyncio.Lock() for lane in LaneName}
        self.fault_refusal = ""
        self.slow_on_core = False

    async def setting(self, lane: LaneName) -> Setting:
        """The setting of a lane; it is opened when it is first asked for."""
        async with self._locks[lane]:
            if lane not in self._opened:
                self._began.setdefault(lane, time.monotonic())
                try:
                    self._opened[lane] = await self._open(lane)
                except CannotRunError as error:
                    self._opened[lane] = error
        opened = self._opened[lane]
        if isinstance(opened, CannotRunError):
            raise CannotRunError(f"lane {lane} did not start: {opened}")
        return opened

    async def _open(self, lane: LaneName) -> Setting:
        if lane in SELF_BOOTING:
            return self.core
        if lane is LaneName.FAULT:
            return await self._open_fault()
        if lane is LaneName.SLOW:
            return await self._open_slow()
        plan = BootPlan(lane, 4, self._options.scale_seed)
        return await self._boot(plan)

    async def _open_fault(self) -> Setting:
        if self.fault_refusal:
            raise CannotRunError(self.fault_refusal)
        if self._workshop.fault_source is None:
            return self.core
        plan = BootPlan(
            LaneName.FAULT,
            1,
            FAULT_SLOTS,
            transition_timeout_s=FAULT_TIMEOUT_S,
            reconcile_interval_s=RECONCILE_S,
        )
        return await self._boot(plan, fault=True)

    async def _open_slow(self) -> Setting:
        if self._slow_link is not None:
            pool = SlotPool(await listing(self._slow_link))
            setting = replace(self.core, link=self._slow_link, pool=pool, slow=True)
        elif self.slow_on_core:
            setting = replace(self.core, slow=True)
        else:
            plan = BootPlan(LaneName.SLOW, 6, 256, slow_ms=self._options.slow_ms)
            setting = await self._boot(plan)
            if not self._workshop.over_http:
                return setting
        # The claims do not say how long this substrate takes, so it is measured.
        seen = await look(Probe(setting, "slow-probe", self._options.seed, Evidence()))
        pace = replace(setting.pace, substrate_s=max(setting.pace.substrate_s, seen.longest_s))
        return replace(setting, pace=pace)

    async def _boot(self, plan: BootPlan, *, fault: bool = False) -> Setting:
        subject = await self._workshop.boot(plan, fault=fault)
        self._boot_s[plan.lane] = subject.instance.boot_s
        return replace(self.core, link=subject.link, pool=subject.pool, slow=plan.slow_ms > 0)

    def records(self) -> list[LaneRecord]:
        """What the report says about lanes."""
        found = []
        for lane in self._opened:
            source = self._workshop.fault_source if lane is LaneName.FAULT else self._subject
            began, ended = self._began.get(lane, 0.0), self._ended.get(lane, 0.0)
            found.append(
                LaneRecord(
                    str(lane),
                    source.name if source else "target",
                    source.version if source else "unknown",
                    round(self._boot_s.get(lane, 0.0), 3),
                    round(max(0.0, ended - began), 3),
                )
            )
        return found

    def note_end(self, lane: LaneName) -> None:
        """A behaviour of this lane has ended; the last one ends the lane."""
        self._ended[lane] = time.monotonic()

    def note_core(self, boot_s: float) -> None:
        """The core lane was opened before the others."""
        self._began[LaneName.CORE] = time.monotonic()
        self._boot_s[LaneName.CORE] = boot_s


async def listing(link: ChannelLink) -> list[pb.Machine]:
    """Every machine over a link."""
    answer = await link.stub().List(pb.ListFilter(), timeout=120)
    return list(answer.machines)
