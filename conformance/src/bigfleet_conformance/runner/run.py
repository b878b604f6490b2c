"""One run: opens the target, probes it, runs the lanes in their phases, and judges.

Phases: the baseline; behaviours that look only at their own machines, up to `--jobs` at a time over
all lanes; those that watch a whole inventory, one at a time in each lane; those with a limit on
reads, alone; then scale, then large. Whatever happens, everything that was started is ended.
"""

import asyncio
import platform
import secrets
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import grpc

from bigfleet_conformance.baseline import CHECKS
from bigfleet_conformance.errors import (
    CannotRunError,
    ConformanceError,
    UnreachableError,
    UsageError,
)
from bigfleet_conformance.harness.evidence import Evidence
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.oracles import CONFIGURED, IDLE, SPECULATIVE, TRANSITIONAL
from bigfleet_conformance.harness.probe import Names, Pace, Probe, Setting, SlotPool
from bigfleet_conformance.options import Options, Target
from bigfleet_conformance.registry import (
    Alone,
    Behaviour,
    Capability,
    LaneName,
    Profile,
    all_behaviours,
    select,
)
from bigfleet_conformance.report.model import Report, ReportSubject, build
from bigfleet_conformance.results import Claim, Findings, Result, Status, required_by
from bigfleet_conformance.runner import claims as claiming
from bigfleet_conformance.runner.execute import Observer, Silent, run_behaviour, run_check
from bigfleet_conformance.runner.lanes import Lanes, listing
from bigfleet_conformance.runner.process import Executable
from bigfleet_conformance.runner.resolve import Configuration, client_credentials, executable_of
from bigfleet_conformance.runner.source import BootPlan, Source
from bigfleet_conformance.runner.workshop import Workshop

REACH_S = 10.0
BEHAVIOUR_S = 60.0
LANE_S = 300.0
USUAL_SETTLE_S = 30.0
LATE_LANES = (LaneName.SCALE, LaneName.LARGE)


async def run(target: Target, options: Options, observer: Observer | None = None) -> Report:
    """Certify one provider."""
    target.validate()
    options.validate(target)
    with tempfile.TemporaryDirectory(prefix="bigfleet-conformance-") as scratch:
        folder = Path(scratch)
        logs = options.out / "logs" if options.out else folder / "logs"
        return await Run(target, options, observer or Silent(), folder, logs).go()


class Run:
    """The state of one run."""

    def __init__(
        self, target: Target, options: Options, observer: Observer, folder: Path, logs: Path
    ) -> None:
        self.target = target
        self.options = options
        self.observer = observer
        self.logs = logs
        self.workshop = Workshop(
            None, None, folder / "states", over_http=options.substrate == "http"
        )
        self.findings = Findings()
        self.source: Source | None = target.source
        self.configuration = Configuration()
        self.links: list[ChannelLink] = []
        self.claims: list[Claim] = []
        self.profiles: tuple[Profile, ...] = ()
        self.jobs = asyncio.Semaphore(options.jobs)
        self.lane_ends: dict[LaneName, float] = {}
        self.began = time.monotonic()
        self.started = datetime.now(UTC)

    async def go(self) -> Report:
        """From the first connection to the report."""
        try:
            core = await self.open_core()
            seen = await claiming.look(Probe(core, "probe", self.options.seed, Evidence()))
            self.observer.say(seen.sentence())
            lanes = await self.prepare(core, seen)
            await self.run_baseline(lanes.core)
            if not self.options.quick:
                await self.run_lanes(lanes)
            self.findings.lanes = lanes.records()
            if self.target.address and not self.options.keep:
                await self.tidy(lanes.core)
        finally:
            await self.close()
        return self.report()

    async def close(self) -> None:
        """End everything that was started."""
        await self.workshop.close()
        for link in self.links:
            await link.close()
        for source in (self.workshop.source, self.workshop.fault_source):
            if isinstance(source, Executable):
                await source.close()

    # Opening

    async def open_core(self) -> Setting:
        """The first instance: the target, or a boot."""
        options = self.options
        # Runs may begin within one second, and a shard id that was used before is fenced.
        prefix = f"conf-{self.started:%m%d%H%M%S}-{options.seed}-{secrets.token_hex(4)}"
        names, boot_s = Names(prefix), 0.0
        if self.target.address:
            link = await self.reach(self.target.address)
            pool = SlotPool(await listing(link))
        else:
            if self.source is None:
                self.source, self.configuration = await executable_of(
                    self.target, options, self.logs
                )
            self.workshop.source = self.source
            plan = BootPlan(LaneName.CORE, 0, options.seed_count)
            subject = await self.workshop.boot(plan)
            link, pool, boot_s = subject.link, subject.pool, subject.instance.boot_s
        self.core_boot_s = boot_s
        return Setting(link, pool, names, self.pace(), frozenset(), self.workshop)

    async def reach(self, address: str) -> ChannelLink:
        """A link to something that is already running."""
        tls = self.target.tls
        link = ChannelLink(
            address, client_credentials(tls) if tls else None, tls.server_name if tls else ""
        )
        self.links.append(link)
        try:
            await asyncio.wait_for(link.channel().channel_ready(), REACH_S)
        except TimeoutError:
            raise UnreachableError(f"nothing answers at {address} within {REACH_S:g} s") from None
        return link

    def pace(self) -> Pace:
        """How long things may take in this run."""
        options = self.options
        return Pace(
            settle_s=options.settle_s,
            soak_s=options.soak_s,
            scale_seed=options.scale_seed,
            large_seed=options.large_seed,
            substrate_s=options.slow_ms / 1000,
            loss_window_s=options.loss_window_s,
            interrupted_s=options.interrupted_s,
        )

    async def prepare(self, core: Setting, seen: claiming.ProbeResult) -> Lanes:
        """Profiles, claims and the lanes they need."""
        bootable = self.source is not None
        options = self.options
        if options.profiles == (Profile.CORE,) and self.configuration.profiles:
            options = replace(options, profiles=self.configuration.profiles)
            options.validate(self.target)
        self.profiles = claiming.chosen_profiles(options, seen, bootable=bootable)
        refusal = await self.open_fault(seen)
        self.workshop.fault_refusal = refusal
        fault_help = self.workshop.fault_source.help if self.workshop.fault_source else ""
        over_http = options.substrate == "http"
        self.claims = claiming.gather_claims(
            options,
            self.profiles,
            seen,
            help_text=self.source.help if self.source else "",
            fault_help=fault_help,
            slow_instance=bool(self.target.slow_address) or over_http,
            configured=self.configuration.claims,
        )
        slow_link = None
        if self.target.slow_address:
            slow_link = await self.reach(self.target.slow_address)
        core = replace(
            core,
            claims=frozenset(claim.capability for claim in self.claims),
            mutual_tls=self.target.tls is not None and self.target.tls.mutual,
            spot_demanded=Profile.SPOT in self.profiles,
            owned=Profile.BARE_METAL in self.profiles
            and Capability.DELETE not in {claim.capability for claim in self.claims},
            pace=replace(core.pace, few_rounds=seen.longest_s > claiming.LONG_TRANSITION_S),
        )
        lanes = Lanes(core, options, self.workshop, self.source, slow_link)
        lanes.fault_refusal = refusal
        lanes.slow_on_core = not bootable
        lanes.note_core(self.core_boot_s)
        return lanes

    async def open_fault(self, seen: claiming.ProbeResult) -> str:
        """The fault subject; the reason why there is none, if so."""
        if Profile.FAULT not in self.profiles and Profile.DURABLE not in self.profiles:
            return ""
        if seen.fault_slots:
            self.workshop.fault_source = self.source
            return ""
        if self.source is None:
            return "the target lists no slot labelled conformance.fault/create=error"
        try:
            stand_in = await Executable.ask(
                self.target.fault_command, self.logs, base_port=self.options.port
            )
        except (UsageError, OSError) as error:
            return f"there is no fault subject: {error}"
        own = getattr(self.source, "kit_version", "")
        chosen = self.target.fault_command != Target().fault_command
        if chosen and not own:
            self.findings.limits.append(
                f"failures were looked at on {stand_in.name} {stand_in.version}, which was named "
                "by --fault-exec"
            )
        elif not own or own != stand_in.kit_version:
            return (
                f"the stand-in {stand_in.name} says providerkit {stand_in.kit_version or 'none'}, "
                f"the provider {own or 'none'}; bring a fault subject of your own with --fault-exec"
            )
        self.workshop.fault_source = stand_in
        return ""

    # Running

    async def run_baseline(self, core: Setting) -> None:
        """The 24 checks, a few at a time."""
        if not (Profile.CORE in self.profiles or self.options.quick) or self.options.only:
            return

        async def one(check: "object") -> None:
            async with self.jobs:
                self.findings.baseline.append(
                    await run_check(check, core, self.options.seed, self.budget())  # type: ignore[arg-type]
                )

        await asyncio.gather(*(one(check) for check in CHECKS))
        order = {check.name: n for n, check in enumerate(CHECKS)}
        self.findings.baseline.sort(key=lambda done: order[done.name])

    def budget(self) -> float:
        """The time of one behaviour."""
        return BEHAVIOUR_S * max(1.0, self.options.settle_s / USUAL_SETTLE_S)

    def chosen(self) -> list[Behaviour]:
        """The behaviours of this run's profiles that were asked for."""
        wanted = [b for b in all_behaviours().values() if required_by(b, self.profiles, "full")]
        chosen = select(wanted, self.options.only, self.options.skip)
        if not chosen:
            raise UsageError("nothing is left to run: no behaviour matches --only and --skip")
        if self.options.substrate == "http":
            left_out = [b.id for b in chosen if b.lane is LaneName.LARGE]
            chosen = [b for b in chosen if b.lane is not LaneName.LARGE]
            if left_out:
                self.findings.limits.append(
                    f"{' and '.join(left_out)} are not run over HTTP; the report of the run in "
                    "memory has them"
                )
        return chosen

    async def run_lanes(self, lanes: Lanes) -> None:
        """All phases."""
        work = self.plan(lanes)
        self.observer.planned([behaviour for behaviour, _ in work])
        self.say_slots(lanes, work)
        early = [item for item in work if item[1] not in LATE_LANES]
        await self.at_once(lanes, [i for i in early if i[0].alone is Alone.NO])
        by_lane: dict[LaneName, list[tuple[Behaviour, LaneName]]] = defaultdict(list)
        for item in early:
            if item[0].alone is Alone.LANE:
                by_lane[item[1]].append(item)
        await asyncio.gather(*(self.in_turn(lanes, items) for items in by_lane.values()))
        await self.in_turn(lanes, [i for i in early if i[0].alone is Alone.RUN])
        for lane in LATE_LANES:
            late = [item for item in work if item[1] is lane]
            if not late:
                continue
            await self.in_turn(lanes, [i for i in late if i[0].alone is Alone.LANE])
            await self.in_turn(lanes, [i for i in late if i[0].alone is Alone.RUN])
            await self.at_once(lanes, [i for i in late if i[0].alone is Alone.NO])

    def plan(self, lanes: Lanes) -> list[tuple[Behaviour, LaneName]]:
        """What runs on which lane; what is skipped is noted at once."""
        work: list[tuple[Behaviour, LaneName]] = []
        unseen: list[str] = []
        claimed = lanes.core.claims
        for behaviour in self.chosen():
            missing = [need for need in behaviour.needs if need not in claimed]
            if missing:
                reason = f"{', '.join(missing)} is not claimed"
                result = Result(behaviour.id, Status.SKIPPED, str(behaviour.lane), reason)
                self.findings.add(result)
                if Capability.SLOW in missing:
                    unseen.append(behaviour.id)
                continue
            lacking = self.missing_levers(behaviour, lanes)
            if lacking:
                reason = f"the fault subject does not have {', '.join(lacking)}"
                self.findings.add(
                    Result(behaviour.id, Status.NOT_APPLICABLE, str(behaviour.lane), reason)
                )
                continue
            work.append((behaviour, behaviour.lane))
            if behaviour.also_slow and Capability.SLOW in claimed:
                work.append((behaviour, LaneName.SLOW))
        if unseen:
            self.findings.limits.append(
                f"{', '.join(unseen)} were not looked at: the provider is too quick to show its "
                "transitional states; give a slow instance with --slow-target"
            )
        return work

    def missing_levers(self, behaviour: Behaviour, lanes: Lanes) -> list[str]:
        """The selectors beyond the canonical ones that the fault subject cannot obey.

        A subject that is built on the kit, or lists slots labelled `stockout`, has all of them;
        another one those that its help names.
        """
        subject = self.workshop.fault_source
        if getattr(subject, "kit_version", "") or lanes.core.pool.faulty["stockout"]:
            return []
        text = subject.help if subject else ""
        return [lever for lever in behaviour.selectors if lever not in text]

    def say_slots(self, lanes: Lanes, work: Sequence[tuple[Behaviour, LaneName]]) -> None:
        """How many slots the core lane needs, and finds."""
        needed = sum(b.slots for b, lane in work if lane is LaneName.CORE)
        free = lanes.core.pool.found - len(lanes.core.pool.taken)
        self.observer.say(f"slots: the core lane needs about {needed} and finds {free} free")

    async def at_once(self, lanes: Lanes, work: Sequence[tuple[Behaviour, LaneName]]) -> None:
        """As many as --jobs allows."""

        async def one(item: tuple[Behaviour, LaneName]) -> None:
            async with self.jobs:
                await self.one(lanes, *item)

        # The longest first: what waits for a time-out should not wait for its turn as well.
        ordered = sorted(work, key=lambda item: item[1] is LaneName.CORE)
        await asyncio.gather(*(one(item) for item in ordered))

    async def in_turn(self, lanes: Lanes, work: Sequence[tuple[Behaviour, LaneName]]) -> None:
        """One after another."""
        for item in work:
            await self.one(lanes, *item)

    async def one(self, lanes: Lanes, behaviour: Behaviour, lane: LaneName) -> None:
        """One behaviour on one lane."""
        self.observer.started(behaviour, str(lane))
        scale = max(1.0, self.options.settle_s / USUAL_SETTLE_S)
        ends = self.lane_ends.setdefault(lane, time.monotonic() + LANE_S * scale)
        left = min(self.budget(), ends - time.monotonic())
        try:
            setting = await lanes.setting(lane)
        except CannotRunError as error:
            result = Result(behaviour.id, Status.ERROR, str(lane), str(error))
        else:
            if left <= 0:
                reason = "the lane's time budget has passed"
                result = Result(behaviour.id, Status.ERROR, str(lane), reason)
            else:
                result = await run_behaviour(behaviour, setting, str(lane), self.options.seed, left)
        lanes.note_end(lane)
        self.findings.add(result)
        self.observer.finished(result)

    async def tidy(self, core: Setting) -> None:
        """Drain and delete the machines of a target that were used."""
        probe = Probe(core, "tidy", self.options.seed, Evidence())
        deletes = Capability.DELETE in core.claims

        async def one(machine: str) -> None:
            async with self.jobs:
                try:
                    await give_back(probe, machine, deletes=deletes)
                except (ConformanceError, grpc.aio.AioRpcError) as error:
                    self.observer.say(f"{machine} was left as it is: {error}")

        await asyncio.gather(*(one(machine) for machine in core.pool.taken))

    # Judging

    def seen_to_hold(self, claim: Claim) -> Claim:
        """A claim is confirmed by the probe, or by a behaviour that needs it and passed."""
        passed = (id for id, r in self.findings.results.items() if r.status is Status.PASSED)
        held = any(claim.capability in all_behaviours()[id].needs for id in passed)
        return replace(claim, confirmed=claim.confirmed or held)

    def report(self) -> Report:
        """Everything, as a report."""
        source = self.source
        subject = ReportSubject(
            name=self.target.name or (source.name if source else "unknown"),
            version=self.target.version or (source.version if source else "unknown"),
            source="target" if self.target.address else "executable",
            command=source.command if source else self.target.address,
        )
        return build(
            subject=subject,
            target=self.target,
            options=self.options,
            profiles=self.profiles,
            claims=[self.seen_to_hold(claim) for claim in self.claims],
            findings=self.findings,
            started=self.started,
            duration_s=time.monotonic() - self.began,
            environment={
                "os": platform.platform(),
                "python": platform.python_version(),
                "grpc": grpc.__version__,
            },
        )


async def give_back(probe: Probe, machine: str, *, deletes: bool) -> None:
    """Drain and delete one machine, as far as it can be."""
    walker = probe.machine(machine)
    record = await probe.see(machine)
    if record.state in TRANSITIONAL:
        record = await walker.until(SPECULATIVE, IDLE, CONFIGURED)
    if record.state == CONFIGURED:
        await walker.drain()
        record = await probe.see(machine)
    if record.state == IDLE and deletes:
        await walker.delete()
