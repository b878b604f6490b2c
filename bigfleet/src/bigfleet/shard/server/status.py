"""What a shard lets people see and do, in the words of `read_service` and `admin_service`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from bigfleet.model import Machine
from bigfleet.model.columns import Demand, MachineColumns
from bigfleet.shard.act.decisions import Decisions
from bigfleet.shard.explain.need_explanations import NeedExplanations
from bigfleet.shard.explain.views import NeedViews
from bigfleet.shard.machines.orders import FOR_A_PERSON
from bigfleet.shard.server.admin_service import ProviderState, ShardState
from bigfleet.shard.server.shard import Shard

_NAMED: Final = 20
"""Machines that are named where a rail is about some."""


class Facade:
    """One shard, looked at from outside."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    # -- reading ---------------------------------------------------------------------------------

    @property
    def shard_id(self) -> str:
        """Who it is."""
        return self._shard.tuning.shard_id

    @property
    def decisions(self) -> Decisions:
        """The last decisions."""
        return self._shard.executor.decisions

    def need_views(self) -> NeedViews | None:
        """The explanation of the last finished cycle; None before the first."""
        return self._shard.outputs.views

    @property
    def explanations(self) -> NeedExplanations:
        """What blocks unmet needs and what would help."""
        return self._shard.explanations

    def fleet(self) -> MachineColumns:
        return self._shard.book.snapshot()

    def machine(self, machine_id: str) -> Machine | None:
        return self._shard.book.get(machine_id)

    def demand(self) -> Demand:
        """The demand of the last cycle; none before the first."""
        views = self._shard.outputs.views
        return Demand.of([], {}, self._shard.book.symbols) if views is None else views.plan.demand

    # -- administration --------------------------------------------------------------------------

    def state(self) -> ShardState:
        """How it is doing."""
        shard = self._shard
        machines = self._machines_per_provider()
        return ShardState(
            shard_id=self.shard_id,
            epoch=shard.epoch,
            cycle=shard.cycle.number,
            paused=shard.pause.on,
            pause_reason=shard.pause.reason,
            dry_run=shard.rails.settings.dry_run,
            sessions=sorted(shard.sessions.clusters()),
            providers=[
                ProviderState(
                    status.name,
                    status.address,
                    status.reachable,
                    status.last_list_unix_ns,
                    machines[status.name],
                    status.last_error,
                )
                for status in shard.lister.status()
            ],
            rails=self._rails(),
        )

    def has_session(self, cluster: str) -> bool:
        """Whether the cluster's operator is connected."""
        return self._shard.sessions.connected(cluster)

    def knows_cluster(self, cluster: str) -> bool:
        """Whether it has demand or machines of this cluster."""
        return self._shard.needs.has_reported(cluster) or bool(self._shard.book.bound(cluster))

    async def pause(self, reason: str) -> None:
        """Execute nothing until resumed."""
        await self._shard.pause.pause(reason)

    async def resume(self) -> None:
        """Execute again."""
        await self._shard.pause.resume()
        self._shard.pace.wake()

    async def forget_cluster(self, cluster: str) -> None:
        """Drop its demand and open its machines to reclaim."""
        await self._shard.forget_cluster(cluster)

    def check_acting(self, provider: str) -> None:
        """NotActingError where nothing is done to this provider's machines now."""
        self._shard.requested.check_acting(provider)

    async def drain_machine(self, machine_id: str) -> None:
        """Reclaim a Configured machine now, else DrainRefusedError."""
        self._shard.requested.drain(machine_id, FOR_A_PERSON)

    async def exclude_machine(self, machine_id: str, excluded: bool) -> None:
        """Keep a machine out of every decision, or let it in again."""
        await self._shard.excluded.set(machine_id, excluded)
        self._shard.pace.wake()

    # -- in words --------------------------------------------------------------------------------

    def _machines_per_provider(self) -> Counter[str]:
        fleet = self.fleet()
        counted: Counter[str] = Counter()
        alive = fleet.cls[fleet.state > 0]
        pools = fleet.classes.pool[alive]
        for number, (provider, _region) in enumerate(fleet.classes.pools):
            counted[provider] += int((pools == number).sum())
        return counted

    def _rails(self) -> list[str]:
        shard, rails = self._shard, []
        if shard.pause.on:
            rails.append(f"paused: {shard.pause.reason or 'no reason given'}")
        if shard.rails.settings.dry_run:
            rails.append("dry-run: decided, not executed")
        if shard.tuning.policy.spend_limit_micro is not None:
            dollars = shard.tuning.policy.spend_limit_micro / 1e6
            rails.append(f"spend limit: ${dollars:.2f}/h of elastic capacity")
        if shard.journal.error:
            rails.append(f"journal cannot be written: {shard.journal.error}")
        audit = shard.world.audit
        if audit is not None and (audit.lost or audit.dropped):
            rails.append(f"audit log: {audit.lost} records lost, {audit.dropped} dropped")
        rails += [f"fenced at provider {name}" for name in sorted(shard.executor.fenced)]
        rails += [
            f"mass disappearance at provider {status.name}: {status.held} machines held"
            for status in shard.lister.status()
            if status.held
        ]
        promised = () if shard.moves is None else shard.moves.promises
        for what, machines in (
            ("excluded from every decision", shard.excluded),
            ("drained for another shard and kept for it", promised),
        ):
            if names := _named(machines):
                rails.append(f"{what}: {names}")
        return rails


def _named(machines: Iterable[str]) -> str:
    """The first of them by name, and how many more there are."""
    names = sorted(machines)
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
