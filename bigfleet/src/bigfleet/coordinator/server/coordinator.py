"""One coordinator, put together of its parts, without a transport: what `service` offers over
gRPC and a simulation runs on virtual time.

Every question and every wish goes to the leader; anybody else answers NotLeaderError. Who may ask
is the service's affair.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bigfleet.coordinator.leadership.election_loop import Duty, ElectionLoop
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.leadership.ports import NoRebalancer, Rebalancer
from bigfleet.coordinator.reports.assignments import ReportReply
from bigfleet.coordinator.server.report_handler import clear_addresses, handle_report
from bigfleet.coordinator.state import Command, SetQuota
from bigfleet.coordinator.store.interface import Snapshot, StateStore
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.process import Clock
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoordinatorEnvironment:
    """Everything a coordinator needs from outside."""

    store: StateStore
    clock: Clock
    metrics: CoordinatorMetrics
    rebalancer: Rebalancer | None = None
    duties: Sequence[Duty] = ()
    """What a leader does besides: exports."""


class Coordinator:
    """All parts of a coordinator and how they hang together."""

    def __init__(self, replica: str, address: str, world: CoordinatorEnvironment) -> None:
        self.replica = replica
        self.metrics = world.metrics
        self.rebalancer: Rebalancer = world.rebalancer or NoRebalancer()
        self._store = world.store
        self.election = ElectionLoop(
            replica,
            address,
            world.store,
            world.clock,
            world.metrics,
            (clear_addresses, self.rebalancer.run, *world.duties),
        )

    # -- living ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Live until cancelled."""
        _log.info("coordinator started", extra={"id": self.replica, "addr": self.election.address})
        try:
            await self.election.run()
        finally:
            await self._store.close()
            _log.info("coordinator stopped", extra={"id": self.replica})

    def not_ready(self) -> str:
        """Why this replica is not of use yet; empty when it is."""
        return "" if self.election.has_leader else "no leader is known: is the store reachable?"

    # -- serving ---------------------------------------------------------------------------------

    def lead(self) -> LeaderState:
        """What the leader has; NotLeaderError where this replica is not it."""
        return self.election.leader_state()

    async def report(self, report: pb.ShardReport) -> ReportReply:
        """A shard's report, taken and answered. Its id is not empty."""
        return await handle_report(self.lead(), report, self.rebalancer, self.metrics)

    async def apply(self, command: Command) -> None:
        """Carry out what an administrator wants."""
        await self.lead().apply(command)

    async def set_quota(self, provider: str, region: str, per_shard: dict[str, int]) -> None:
        """Set an allocation, within what shards announce."""
        leader_state = self.lead()
        announced = leader_state.reports.announced((provider, region), leader_state.state.shards)
        await leader_state.apply(SetQuota(provider, region, per_shard, announced))

    async def snapshot(self) -> Snapshot:
        """The whole state as a document."""
        return await self._store.snapshot(self.lead().leadership)
