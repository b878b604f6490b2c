"""Executes reconcile passes: list, plan off the loop, then one careful step after the other.

Every step takes the machine's lock and looks again before it changes anything: the plan was made
from a snapshot. A listing that raises changes nothing. A pass without a difference writes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.bug_log import classed
from bigfleet_providerkit.backend.gather import gather
from bigfleet_providerkit.backend.hosts import host_of, notes_of
from bigfleet_providerkit.backend.reconcile.litter import LitterSweep
from bigfleet_providerkit.backend.reconcile.plan import (
    Adoption,
    Looks,
    Plan,
    ReconcileInput,
    due_for_second_look,
    make_plan,
)
from bigfleet_providerkit.backend.reconcile.rails import RailLimits
from bigfleet_providerkit.backend.state.ledger import Edit, Ledger
from bigfleet_providerkit.backend.steps import Steps
from bigfleet_providerkit.calls.limiter import polling
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import HostLost, StoreUnavailable, error_line
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import CapacityType, Kind, State
from bigfleet_providerkit.machines.transitions import fail, succeed
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.substrate import Host, LeavesLitter, Substrate

LATE_KEPT = 86_400.0
T = TypeVar("T")


class Reconciler:
    """Brings records and hosts together."""

    def __init__(
        self,
        substrate: Substrate,
        ledger: Ledger,
        catalogue: OfferingCatalogue,
        steps: Steps,
        settings: Settings,
        runtime: Runtime,
        metrics: Metrics,
        log: FilteringBoundLogger,
        on_failed: Callable[[Record], None],
    ) -> None:
        self._substrate = substrate
        self._ledger = ledger
        self._catalogue = catalogue
        self._steps = steps
        self._settings = settings
        self._runtime = runtime
        self._metrics = metrics
        self._log = log
        self._on_failed = on_failed
        self._one_at_a_time = asyncio.Lock()
        self.looks = Looks()
        self.held: list[Host] = []
        limits = RailLimits(settings.orphan_grace, settings.orphans_removed)
        self.litter = LitterSweep(substrate, runtime, log, limits, self._in_use)

    async def run(self) -> bool:
        """One pass; False when the substrate could not be listed."""
        async with self._one_at_a_time:
            try:
                plan = await self._plan()
            except Exception as error:  # noqa: BLE001 - a bug of the substrate is a failed listing
                self._metrics.reconciles.labels("error").inc()
                problem = classed(error, self._metrics, self._log)
                self._log.warning("reconcile failed", error=error_line(problem))
                return False
            await self._execute(plan)
            await self._sweep_litter(plan)
            self._metrics.reconciles.labels("success").inc()
            return True

    async def sweep(self) -> list[str]:
        """Remove all orphans, duplicates and held hosts now; a person has confirmed it."""
        async with self._one_at_a_time:
            by_ref = {host.ref: host for host in await self._substrate.list_managed()}
            refs = [ref for ref in self.looks.unwanted if ref in by_ref]
            await self._each([by_ref[ref] for ref in refs], lambda h: self._remove(h, "swept"))
            swept = await self.litter.sweep()
            left = self.looks.unwanted
            self.held = [host for host in self.held if host.ref in left]
            self._metrics.orphans.set(len(left) + len(self.litter.seen))
            return [*(ref for ref in refs if ref not in left), *swept]

    async def _sweep_litter(self, plan: Plan) -> None:
        """What is not a host; a listing that fails leaves it to the next pass."""
        if not isinstance(self._substrate, LeavesLitter):
            return
        hosts = sum(1 for record in self._ledger.inventory if record.host)
        try:
            left = await self.litter.run(hosts)
        except Exception as error:  # noqa: BLE001 - hosts do not wait for what they left behind
            problem = classed(error, self._metrics, self._log)
            self._log.warning("leftovers were not listed", error=error_line(problem))
            return
        self._metrics.orphans.set(plan.orphans + left)

    def _in_use(self) -> frozenset[str]:
        creating = (work.operation for work in self._ledger.work.values())
        with_host = (r.create_op for r in self._ledger.inventory if r.host and r.create_op)
        return frozenset((*creating, *with_host))

    async def _plan(self) -> Plan:
        with polling():
            hosts = await self._substrate.list_managed()
        world = ReconcileInput(
            records=self._ledger.inventory.snapshot(),
            hosts=hosts,
            looked={},
            created=self._created,
            late=frozenset(self._ledger.late),
            ours=self._ledger.ids.ours,
            now=self._runtime.clock.now(),
            window=self._settings.consistency_window,
            limits=RailLimits(self._settings.orphan_grace, self._settings.orphans_removed),
        )
        refs = due_for_second_look(world, self.looks)
        if refs:
            with polling():
                found = {host.ref: host for host in await self._substrate.list_managed(refs)}
            world = replace(world, looked={ref: found.get(ref) for ref in refs})
        return await self._runtime.offload(lambda: make_plan(world, self.looks))

    def _created(self, machine: str) -> float:
        row = self._ledger.notes.get(machine)
        return row.created if row is not None else 0.0

    async def _execute(self, plan: Plan) -> None:
        self._metrics.orphans.set(plan.orphans)
        over = "leftover of an operation that is over"
        await self._each(plan.leftovers, lambda host: self._remove(host, over))
        await self._each(plan.adopt, self._adopt)
        await self._each(plan.lost, self._lose)
        await self._each(plan.deleted, self._delete_ended)
        await self._each(plan.start, lambda found: self._start(*found))
        await self._each(plan.stuck, lambda found: self._stuck(*found))
        await self._each(plan.retag, self._retag)
        await self._each(plan.remove, lambda host: self._remove(host, "belongs to no machine"))
        await self._refresh_facts(plan)
        await self._prune_late(plan)
        self.held = plan.held
        if plan.held:
            self._log.error(
                "removals held; confirm them with `sweep`",
                count=len(plan.held),
                hosts=",".join(host.ref for host in plan.held[:10]),
            )

    async def _each(self, items: Sequence[T], step: Callable[[T], Awaitable[None]]) -> None:
        await gather(items, lambda item: self._guarded(step(item)))

    async def _guarded(self, step: Awaitable[None]) -> None:
        """One step that fails does not keep the others from happening."""
        try:
            await step
        except StoreUnavailable as error:
            self._log.warning("reconcile step failed", error=str(error))
        except Exception as error:  # noqa: BLE001 - nor does one that met a bug
            problem = classed(error, self._metrics, self._log)
            self._log.warning("reconcile step failed", error=str(problem))

    async def _change(self, machine: str, edit: Callable[[Record], Edit | None]) -> Record | None:
        """Change a record under its lock, if it still is as the plan thought."""
        async with self._ledger.hold(machine):
            record = self._ledger.inventory.get(machine)
            wanted = edit(record) if record is not None else None
            if wanted is None:
                return None
            await self._ledger.commit(wanted)
            return self._ledger.inventory.get(machine)

    async def _lose(self, machine: str) -> None:
        now = self._runtime.clock.now()

        def lost(record: Record) -> Edit | None:
            if record.state not in (
                State.IDLE, State.CONFIGURED, State.CONFIGURING, State.DRAINING,
            ):  # fmt: skip
                return None
            error = HostLost(f"host {record.host} is gone from the substrate")
            failed = fail(record, error_line(error), now)
            if record.capacity_type is CapacityType.SPOT:
                failed = replace(failed, observed=1.0)
            return Edit(record=failed, work_ended=machine)

        after = await self._change(machine, lost)
        if after is not None and after.state is State.FAILED:
            self._metrics.hosts_lost.labels(after.capacity_type.word).inc()
            self._log.warning("host lost", machine=machine, host=after.host)
            self._on_failed(after)

    async def _delete_ended(self, machine: str) -> None:
        def ended(record: Record) -> Edit | None:
            if record.state is not State.DELETING:
                return None
            if record.extra:
                return Edit(remove=machine, work_ended=machine)
            after = succeed(record, Kind.DELETE)
            return Edit(record=after, work_ended=machine, notes={machine: None})

        await self._change(machine, ended)

    async def _start(self, machine: str, host: Host) -> None:
        self._log.warning("host is not running; starting it", machine=machine, host=host.ref)
        await self._steps.power_on(host)

    async def _stuck(self, machine: str, host: Host) -> None:
        now = self._runtime.clock.now()

        def stuck(record: Record) -> Edit | None:
            if record.state not in (State.IDLE, State.CONFIGURED) or record.host != host.ref:
                return None
            error = HostLost(f"host {host.ref} is {host.power} and could not be started")
            return Edit(record=fail(record, error_line(error), now))

        after = await self._change(machine, stuck)
        if after is not None:
            self._on_failed(after)

    async def _retag(self, machine: str) -> None:
        """Without the machine's lock: a mutation never waits for the substrate, and a tag that it
        overtakes is put right by the next pass."""
        record = self._ledger.inventory.get(machine)
        if record is not None and record.host and record.state in (State.IDLE, State.CONFIGURED):
            await self._steps.tag(record, record.cluster or None)

    async def _remove(self, host: Host, why: str) -> None:
        self._log.warning("removing host", host=host.ref, machine=host.machine_id, reason=why)
        await self._steps.remove_aside(host)
        self.looks.unwanted.pop(host.ref, None)
        self.looks.held.discard(host.ref)

    async def _adopt(self, adoption: Adoption) -> None:
        machine, host = adoption.machine, adoption.host
        state = State.CONFIGURED if host.cluster else State.IDLE
        notes = {machine: notes_of(host, self._runtime.clock.now())}
        async with self._ledger.hold(machine):
            record = self._ledger.inventory.get(machine)
            if record is None:
                shape = self._catalogue.foreign_shape(host)
                if shape is None:
                    self._log.error("a host cannot be shown: no price or shape", host=host.ref)
                    return
                record = Record(machine, self._settings.label, shape, extra=True)
            elif record.state is not State.SPECULATIVE:
                return
            adopted = replace(
                record, state=state, host=host.ref, cluster=host.cluster or "",
                create_op=host.operation_id, configure_op="", drain_op="", delete_op="",
            )  # fmt: skip
            await self._ledger.commit(Edit(record=adopted, notes={**notes}))
        self._log.warning("host adopted", machine=machine, host=host.ref, state=state.word)

    async def _refresh_facts(self, plan: Plan) -> None:
        """Addresses and pins that changed; hosts of 20,000 machines rarely do."""
        now = self._runtime.clock.now()
        for number, (machine, host) in enumerate(plan.present):
            if number % 500 == 499:
                await asyncio.sleep(0)
            row = self._ledger.notes.get(machine)
            if row is not None and (host.address in ("", row.address)) and row.ref == host.ref:
                continue
            record = self._ledger.inventory.get(machine)
            if record is None or record.host != host.ref:
                continue
            fresh = notes_of(host, row.created if row else now)
            if row is not None:
                fresh.notes, fresh.pin = row.notes, fresh.pin or row.pin
            async with self._ledger.hold(machine):
                await self._guarded(self._ledger.commit(Edit(notes={machine: fresh})))

    async def _prune_late(self, plan: Plan) -> None:
        now = self._runtime.clock.now()
        seen = {host.operation_id for host in plan.leftovers}
        old = [
            operation
            for operation, late in self._ledger.late.items()
            if operation not in seen and now - late.since > LATE_KEPT
        ]
        if old:
            await self._guarded(self._ledger.commit(Edit(late=dict.fromkeys(old))))

    def host_of(self, record: Record) -> Host:
        """The host of a record, for people who inspect it."""
        return host_of(record, self._ledger)
