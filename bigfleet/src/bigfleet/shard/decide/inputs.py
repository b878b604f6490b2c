"""What a cycle decides on besides machines: demand with what is known of clusters, the policy of
this cycle, the carry with what happened since the last one, and answers merged into the book.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bigfleet.decision import Carry, Policy
from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import Demand
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.lifecycle import ALLOCATABLE, BOUND
from bigfleet.observe.process import Clock
from bigfleet.observe.shard import ShardMetrics
from bigfleet.shard.act.backoff import remembered
from bigfleet.shard.act.executor import Executor
from bigfleet.shard.act.rails import Rails
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.demand.symbol_gc import SymbolCollector
from bigfleet.shard.machines.book import Book
from bigfleet.shard.operators.sessions import Sessions
from bigfleet.shard.providers.lister import Lister


@dataclass
class CycleInputs:
    """Reads the parts of a shard for its cycle."""

    book: Book
    needs: NeedsTable
    sessions: Sessions
    lister: Lister
    executor: Executor
    rails: Rails
    clock: Clock
    base: Policy
    """What flags set."""
    quotas: Callable[[], Mapping[tuple[str, str], int]]
    on_loss: Callable[[Machine], None]
    metrics: ShardMetrics
    forgetting: SymbolCollector
    _shown: set[tuple[str, str]] = field(default_factory=set)
    """Name and region of the providers of the last merge."""

    async def demand(self, carry: Carry) -> Demand:
        """All demand, with what is known of the clusters."""
        more = True
        while more:
            more = self.needs.prepare()
            await asyncio.sleep(0)
        if self.book.shapeless:
            shapes: dict[tuple[str, str], str] = {}
            for cluster in self.needs.clusters():
                shapes |= self.needs.shapes(cluster)
            self.book.complete_stamps(shapes)
        return self.needs.demand(self._facts(carry.backed_off(self.clock.now())))

    def policy(self) -> Policy:
        """The settings of this cycle."""
        return replace(
            self.base,
            quotas=self.quotas(),
            reclaim_budget=self.rails.reclaim_budget(configured_per_cluster(self.book)),
            paused=self.rails.pause.on,
        )

    async def carried_over(self, carry: Carry) -> Carry:
        """The carry with what failed since the last cycle, in the numbers that hold now."""
        carry = await self.forgetting.tidied(carry)
        return remembered(carry, self.executor.failures.take_events())

    async def merge(self) -> int:
        """Merge provider answers that have arrived; how many machines changed."""
        reconciled = await self.lister.merge()
        for machine in reconciled.losses:
            self.metrics.machine_lost(machine.capacity_type)
            self.on_loss(machine)
        for _ in range(reconciled.jumped):
            self.metrics.state_jump()
        for reason, count in reconciled.refused.items():
            for _ in range(count):
                self.metrics.machine_rejected(reason)
        self._show_providers(reconciled.merged)
        self._keep_off()
        return reconciled.changes

    def _show_providers(self, merged: Collection[str]) -> None:
        shown = set()
        for status in self.lister.status():
            if status.name in merged:
                self.metrics.provider_merged(status.name, status.region)
            self.metrics.removals_held(status.name, status.region, status.held)
            shown.add((status.name, status.region))
        for provider, region in self._shown - shown:
            self.metrics.provider_gone(provider, region)
        self._shown = shown

    def _keep_off(self) -> None:
        """Leave machines out of the decision while they wait after a failure.

        They would be picked again, and refused again, until the wait is over.
        """
        self.book.back_off(list(filter(self._is_free, self.executor.failures.waiting())))

    def _is_free(self, machine_id: str) -> bool:
        machine = self.book.get(machine_id)
        return machine is not None and machine.state in ALLOCATABLE

    def _facts(self, backed_off: frozenset[str]) -> dict[str, ClusterFacts]:
        known = dict.fromkeys((*self.book.symbols.clusters, *self.needs.clusters()))
        return {
            cluster: ClusterFacts(
                reported=self.needs.has_reported(cluster),
                blocked=not self.sessions.connected(cluster) or cluster in backed_off,
                overhead=stated.overhead,
                tolerations_stated=stated.tolerations,
                default_arch=stated.arch,
                default_os=stated.os,
            )
            for cluster in known
            for stated in (self.needs.stated(cluster),)
        }


def configured_per_cluster(book: Book) -> dict[str, int]:
    """How many Configured machines each cluster has."""
    fleet = book.snapshot()
    bound = fleet.cluster[(fleet.state == MachineState.CONFIGURED) & (fleet.cluster >= 0)]
    counts = np.bincount(bound, minlength=len(book.symbols.clusters))
    return {
        cluster: int(count)
        for cluster, count in zip(book.symbols.clusters, counts.tolist(), strict=False)
        if count
    }


def bound_capacity(book: Book, cluster: str) -> dict[str, float]:
    """What the machines bound to a cluster offer, in units per resource."""
    fleet = book.snapshot()
    number = book.symbols.clusters.find(cluster)
    mine = (fleet.cluster == number) & np.isin(fleet.state, list(BOUND))
    if number < 0 or not mine.any():
        return {}
    machines = np.bincount(fleet.cls[mine], minlength=len(fleet.classes))
    whole = machines @ fleet.classes.whole
    milli = machines @ fleet.classes.milli.astype(np.int64)
    amounts = whole + milli / 1000
    return {
        name: float(amount)
        for name, amount in zip(book.symbols.resources, amounts.tolist(), strict=False)
        if amount
    }
