"""One shard, put together of its parts, without a transport: what `server` serves over gRPC and a
simulation runs on virtual time.

`Shard.open` reads the data directory and begins a new epoch; `run` lives until cancelled or
stopped. Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final

from bigfleet.decision import Engine
from bigfleet.model import Machine
from bigfleet.model.columns import MachineColumns, Symbols
from bigfleet.observe.pages import CycleLock
from bigfleet.observe.process import Clock, Offload
from bigfleet.observe.shard import ShardMetrics
from bigfleet.observe.tracing import Spans
from bigfleet.provider import ProviderClient, Providers, ProviderSite
from bigfleet.shard.act.actions import ActionContext
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.act.executor import Executor
from bigfleet.shard.act.manual_drain import ManualDrains
from bigfleet.shard.act.rails import Rails
from bigfleet.shard.act.traces import NoTraces, ShardTraces, carried
from bigfleet.shard.decide.cycle import DecisionCycle
from bigfleet.shard.decide.cycle_timer import CycleTimer
from bigfleet.shard.decide.inputs import CycleInputs, bound_capacity
from bigfleet.shard.decide.outputs import CycleOutputs
from bigfleet.shard.decide.watchdog import DecisionWatchdog
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.demand.ingest import Ingest
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.demand.quarantine import Quarantine
from bigfleet.shard.demand.rollups import RollUpIntake
from bigfleet.shard.demand.symbol_gc import SymbolCollector
from bigfleet.shard.explain.ledger import Ledger, Shortfall
from bigfleet.shard.explain.need_explanations import NeedExplanations
from bigfleet.shard.explain.provisioning_latency import ProvisioningLatency
from bigfleet.shard.explain.reclaim_audit import UnforcedReclaims
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.exclusions import Exclusions
from bigfleet.shard.machines.node_observations import NodeObservations
from bigfleet.shard.machines.orders import FOR_ANOTHER_SHARD
from bigfleet.shard.operators.sessions import Sessions, TermAndEpoch
from bigfleet.shard.peers.client import CoordinatorClient
from bigfleet.shard.peers.coordinator_caller import Caller
from bigfleet.shard.peers.instructions import Instructions
from bigfleet.shard.peers.moves import Moves
from bigfleet.shard.peers.report import Reports
from bigfleet.shard.ports import Disk, steady
from bigfleet.shard.providers.lister import Lister
from bigfleet.shard.server.readiness import ShardReadiness
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.state.data_dir import DataDirectory
from bigfleet.shard.state.done_instructions import DoneInstructions
from bigfleet.wire.fencing import FencingStamps

STOP_SECONDS: Final = 2.5
"""With what follows it, a signal ends the process within five seconds."""
NOTHING_TAKEN: Final = 12
"""A shortfall older than so many cycles may be met by draining machines of other shards."""
_log = logging.getLogger(__name__)

Count = Callable[[str, str, str, float], None]
"""Provider, method, status and seconds of a call."""
Connect = Callable[[ProviderSite, FencingStamps, Count], ProviderClient]


@dataclass(frozen=True)
class ShardEnvironment:
    """Everything a shard needs from outside."""

    clock: Clock
    disk: Disk
    offload: Offload
    """For short work: parsing, files."""
    decide_in: Offload
    """For the decision, so that nothing waits behind it."""
    explain_in: Offload
    """For explanations that a person asks for: one at a time, and nothing waits behind them."""
    rng: Random
    connect: Connect
    timer: Callable[[], float]
    cpu: Callable[[], float]
    caller: Caller | None = None
    """How coordinators are called; None without coordinators."""
    audit: AuditLog | None = None
    version: str = "0"
    age: float = 0.0
    """Seconds the process is old when the shard is put together."""
    spans: Spans | None = None
    """Where traces go; None for nowhere."""


class Shard:
    """All parts of a shard and how they hang together."""

    def __init__(
        self,
        tuning: ShardConfig,
        world: ShardEnvironment,
        loaded: DataDirectory,
        metrics: ShardMetrics,
    ) -> None:
        self.tuning, self.world = tuning, world
        self.epoch = loaded.epoch
        clock = world.clock
        self.metrics = metrics
        self.metrics.epoch(self.epoch)
        symbols = Symbols()
        self.book = Book(symbols, clock)
        self.observed = NodeObservations(self.book, clock)
        self.ownership, self.journal, self.pause = loaded.ownership, loaded.journal, loaded.pause
        self.restamps = loaded.restamps
        self.assignments = loaded.assignments
        self.excluded = Exclusions(self.book, loaded.excluded)
        self.forgotten = loaded.forgotten
        self.pace = CycleTimer(clock, tuning.cycle_interval, tuning.min_cycle_gap)
        self.forced = UnforcedReclaims()
        self._stamps = FencingStamps(tuning.shard_id, self.epoch)
        self.providers = Providers(
            lambda site: world.connect(site, self._stamps, self.metrics.provider_call)
        )
        self.lister = Lister(
            self.book, self.providers, self.ownership, self.journal, clock, world.offload,
            world.rng, interval=tuning.cycle_interval, remembered=dict(loaded.entries),
            restamped=loaded.stamps, on_arrival=self.pace.wake,
        )  # fmt: skip
        self.needs = NeedsTable(symbols, clock.now)
        quarantine = Quarantine(
            partial(bound_capacity, self.book), tuning.quarantine, self.lister.all_first_merged
        )
        self._rollups = rollups = RollUpIntake(
            self.needs, quarantine, clock, world.offload, self.metrics,
            mark_present=self.forgotten.mark_present, are_comparable=lambda: not self._awaited(),
            ingest=Ingest(limits=tuning.limits),
        )  # fmt: skip
        for cluster in self.forgotten:
            self._let_go(cluster)
        self.sessions = Sessions(
            self.book, self.observed, rollups, clock, world.rng, self.metrics,
            standing=self._standing, outbox_bound=tuning.outbox_bound, carried=carried,
            is_given_away=self.ownership.has_given,
        )  # fmt: skip
        self.traces = NoTraces() if world.spans is None else self._traced(world.spans, rollups)
        self.rails = Rails(tuning.rails, self.pause, clock, self.metrics, self.unheard)
        means = ActionContext(
            book=self.book, providers=self.providers, sessions=self.sessions, lister=self.lister,
            clock=clock, chance=world.rng, metrics=self.metrics,
            node_name=self.observed.node_name, wake=self.pace.wake, traces=self.traces,
        )  # fmt: skip
        self.executor = Executor(
            means, self.journal, epoch=self.epoch, may_act=self.rails.may_act,
            settings=tuning.pool, audit=world.audit,
        )  # fmt: skip
        self.executor.restore(loaded.entries)
        self.coordinator = self._coordination(loaded.remembered)
        self._inputs = CycleInputs(
            self.book, self.needs, self.sessions, self.lister, self.executor, self.rails, clock,
            tuning.policy, self.assignments.quotas, self._lost,
            self.metrics,
            SymbolCollector(self.book, self.needs, world.offload, tuning.unused_identities),
        )  # fmt: skip
        self.outputs = CycleOutputs(
            self.book, self.needs, self.sessions, self.executor, self.rails, self.forced, clock,
            self.lister, self.metrics, tuning.phase_attribution, escalate=self._escalate,
            again=self.pace.wake, ledger=Ledger(tuning.cycle_interval),
            latency=self._provisioning_latency(rollups), age=world.age,
        )  # fmt: skip
        self.cycle = DecisionCycle(
            self.book, self._inputs, self.outputs, clock, world.decide_in, world.timer, world.cpu,
            self.executor, self.executor.withheld.take,
            restamped=self.restamps.add, engine=Engine(clock=world.timer),
            watchdog=DecisionWatchdog(clock, tuning.max_decision_seconds),
        )  # fmt: skip
        self.requested = ManualDrains(
            tuning.shard_id, self.book, self.executor, self.rails, lambda: self.cycle.number
        )
        self.deciding = CycleLock()
        self.explanations = NeedExplanations(world.explain_in, clock, self.deciding.wait)
        self._ready_at = clock.monotonic() + tuning.ready_after
        self._is_ready = False
        self._disk = loaded.disk
        self._readiness = ShardReadiness(
            clock, self.executor, self.lister, loaded.disk, tuning.cycle_interval
        )
        self._all_listed = False
        self._listen()

    @classmethod
    async def open(cls, tuning: ShardConfig, world: ShardEnvironment) -> Shard:
        """Read the data directory, begin a new epoch, and put the parts together."""
        metrics = ShardMetrics(
            steady(world.clock), version=world.version, warmup_cycles=tuning.metrics_warmup_cycles
        )
        directory = DataDirectory(
            tuning.shard_id, tuning.providers, world.disk, world.offload, metrics.actuation_paused
        )
        await directory.read(world.clock, tuning.epoch)
        return cls(tuning, world, directory, metrics)

    # -- living ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live until cancelled."""
        _log.info(
            "shard started",
            extra={
                "shard": self.tuning.shard_id,
                "epoch": self.epoch,
                "execute_workers": self.tuning.pool.concurrency,
                "queue_capacity": self.tuning.pool.queue,
            },
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.journal.run())
                group.create_task(self.restamps.run())
                group.create_task(
                    self.assignments.follow(self.providers, self.lister.providers_changed)
                )
                group.create_task(self.lister.run())
                group.create_task(self.executor.run())
                group.create_task(self._decide())
                group.create_task(self._disk.probe(self.world.offload))
                if self.coordinator is not None:
                    group.create_task(self.coordinator.run())
        finally:
            _log.info("shard stopped", extra={"shard": self.tuning.shard_id})

    async def stop(self) -> None:
        """Take nothing more and let what runs end, within a few seconds."""
        self.explanations.stop()
        self.cycle.stop()
        self.sessions.stop()
        await self.executor.stop(STOP_SECONDS)

    async def close(self) -> None:
        """Hang up on everybody. After `run` has ended."""
        await self.providers.close()
        if self.world.caller is not None:
            await self.world.caller.close()

    def not_ready(self) -> str:
        """Why this shard is not of use yet; empty when it is."""
        return self._readiness.problem(self._awaited())

    def unheard(self) -> list[str]:
        """Providers that were never listed since the start, however long that is ago."""
        listed = {status.name for status in self.lister.status() if status.is_first_merged}
        return sorted({site.name for site in self.assignments.sites()} - listed)

    def _awaited(self) -> list[str]:
        """Providers to wait for. Once there are none, or the time is over, there never are."""
        if self._is_ready:
            return []
        unheard = self.unheard()
        self._is_ready = not unheard or self.world.clock.monotonic() >= self._ready_at
        return [] if self._is_ready else unheard

    async def _decide(self) -> None:
        while True:
            trigger = await self.pace.next()
            if self._awaited():
                # With a part of the machines, demand would look unmet that is not.
                await self._inputs.merge()
                if self._awaited():
                    self._readiness.decided()
                    continue
            await self._rollups.take_parked()
            if self.moves is not None:
                self.moves.promises.expire()
            with self.deciding.taken():
                record = await self.cycle.once(trigger)
            if record is None:
                self.metrics.decision_discarded()
                self.pace.wake()
                continue
            self._readiness.decided()
            if not self._all_listed and len(self.providers) and self.lister.all_first_merged():
                self._all_listed = True
                self.executor.restored()
                self.restamps.all_listed(self._fleet)
                await self.forgotten.tidy(lambda cluster: bool(self.book.bound(cluster)))

    # -- who hears of what -----------------------------------------------------------------------

    def _listen(self) -> None:
        self.book.on_change.append(self._changed)
        self._rollups.on_rollup.append(self._rolled_up)
        self.sessions.on_reclaim_ack.append(self.executor.reclaim_acknowledged)
        self.sessions.on_close.append(self.outputs.session_ended)

    def _changed(self, before: Machine | None, after: Machine | None) -> None:
        self.forced.changed(before, after, self.world.clock.now(), self.cycle.read_unix_ns)
        known = after or before
        if known is not None and (after is None or not after.cluster):
            self.observed.forget(known.id)

    def _rolled_up(self, cluster: str, changes: RowChanges) -> None:
        now = self.world.clock.now()
        if changes.removed or changes.shrunk:
            self.forced.asked_for_less(cluster, now)
        groups = (key[1] for key in (*changes.added, *changes.changed))
        self.forced.gangs_changed(cluster, groups, now)
        counts = self.outputs.changed_rows
        for kind, rows in (
            ("need_added", changes.added),
            ("need_changed", changes.changed),
            ("need_removed", changes.removed),
        ):
            counts[kind] = counts.get(kind, 0) + len(rows)
        self.pace.wake()

    def _lost(self, machine: Machine) -> None:
        _log.warning(
            "machine lost",
            extra={"machine": machine.id, "cluster": machine.cluster, "provider": machine.provider},
        )

    def _standing(self) -> TermAndEpoch:
        term = 0 if self.instructions is None else self.instructions.term
        return TermAndEpoch(term, self.epoch)

    def _traced(self, spans: Spans, rollups: RollUpIntake) -> ShardTraces:
        traces = ShardTraces(spans, self.world.clock, lambda: self.cycle.read_unix_ns)
        rollups.on_taken.append(traces.rolled_up)
        self.book.on_change.append(traces.changed)
        return traces

    def _provisioning_latency(self, rollups: RollUpIntake) -> ProvisioningLatency:
        latency = ProvisioningLatency(self.world.clock, self.metrics.provisioned)
        rollups.on_taken.append(latency.rolled_up)
        self.book.on_change.append(latency.changed)
        return latency

    # -- coordination ----------------------------------------------------------------------------

    def _coordination(self, remembered: DoneInstructions) -> CoordinatorClient | None:
        self.instructions: Instructions | None = None
        self.moves: Moves | None = None
        caller = self.world.caller
        if caller is None or not self.tuning.coordinators:
            return None
        self.moves = Moves(
            self.tuning.shard_id, self.book, self._fleet, self.ownership, remembered,
            self._preempt, self.world.clock, self.metrics.machines_transferred, self.unheard,
        )  # fmt: skip
        self.book.on_change.append(self.moves.promises.seen)
        self.instructions = Instructions(
            self.ownership, self.moves, remembered, self.metrics, self.assignments.take
        )
        reports = Reports(
            shard_id=self.tuning.shard_id,
            epoch=self.epoch,
            address=self.tuning.address,
            providers=",".join(site.address for site in self.tuning.providers),
            clock=self.world.clock,
            fleet=self._fleet,
            shortfalls=self._shortfalls,
            stated=self.needs.stated,
            clusters=lambda: {*self.sessions.clusters(), *self.needs.clusters()},
            transfers=lambda: self.ownership.transfers,
        )
        self.metrics.coordinator_expected()
        return CoordinatorClient(
            self.tuning.coordinators, caller, reports, self.instructions, self.metrics,
            self.world.rng,
        )  # fmt: skip

    def _shortfalls(self) -> list[Shortfall]:
        """What other shards may help with.

        As long as a provider was never heard, its machines may serve what looks unmet: that may
        bring free machines here, but does not justify taking others' machines away.
        """
        found = self.outputs.ledger.reported()
        if not found or not self.unheard():
            return found
        return [replace(one, age_cycles=min(one.age_cycles, NOTHING_TAKEN)) for one in found]

    def _fleet(self) -> MachineColumns:
        return self.book.snapshot()

    def _escalate(self) -> None:
        if self.coordinator is not None:
            self.coordinator.wake()

    def _preempt(self, machine_id: str, priority: int) -> None:
        reason = f"{FOR_ANOTHER_SHARD} (priority {priority})"
        self.requested.drain(machine_id, reason, priority)

    async def forget_cluster(self, cluster: str) -> None:
        """A cluster is gone for good: its demand goes, and its machines are open to reclaim.

        Durable when it returns, else OSError.
        """
        await self.forgotten.add(cluster)
        self.sessions.forget(cluster)
        self._let_go(cluster)
        self.pace.wake()

    def _let_go(self, cluster: str) -> None:
        self.needs.let_go(cluster)
        self.forced.asked_for_less(cluster, self.world.clock.now())
