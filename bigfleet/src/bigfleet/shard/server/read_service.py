"""Looking into a shard over the wire: needs, machines, decisions, and the state as a scenario.

Reads disturb nothing: each works on a snapshot, long answers go out in small pieces between which
the event loop serves others, and a watcher that falls behind misses the oldest decisions instead of
being waited for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

import grpc
import grpc.aio
import numpy as np
import numpy.typing as npt

from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import Demand, MachineColumns
from bigfleet.observe.process import Offload
from bigfleet.shard.act.decisions import Decision, Decisions
from bigfleet.shard.explain.need_explanations import NeedExplanations
from bigfleet.shard.explain.scenario_export import ExportError, scenario_pieces
from bigfleet.shard.explain.views import NeedViews
from bigfleet.wire.identity import SHARD_READ, require
from bigfleet.wire.machines import machine_to_proto
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc

Context = grpc.aio.ServicerContext[object, object]
I64 = npt.NDArray[np.int64]

SERVICE: Final = "bigfleet.v1alpha1.ShardRead"
_STATES: Final = frozenset(int(state) for state in MachineState if state)
_BATCH: Final = 200
"""Machines per frame: some milliseconds of work."""


class Readable(Protocol):
    """What a shard lets people see."""

    @property
    def shard_id(self) -> str:
        """Who it is."""

    @property
    def decisions(self) -> Decisions:
        """The last decisions."""

    def need_views(self) -> NeedViews | None:
        """The explanation of the last finished cycle; None before the first."""

    @property
    def explanations(self) -> NeedExplanations:
        """What blocks unmet needs and what would help."""

    def fleet(self) -> MachineColumns:
        """The machines as they are now."""

    def machine(self, machine_id: str) -> Machine | None:
        """One machine as it is now."""

    def demand(self) -> Demand:
        """The demand as it is now."""


class ShardReadServicer(rpc.ShardReadServicer):
    """For readonly and admin."""

    def __init__(self, shard: Readable, offload: Offload) -> None:
        self._shard = shard
        self._offload = offload

    async def InspectNeeds(  # noqa: N802
        self, request: pb.InspectNeedsRequest, context: Context
    ) -> AsyncIterator[pb.InspectNeedsResponse]:
        """Every need with its verdict, as of the last finished cycle."""
        await require(context, SHARD_READ, "InspectNeeds")
        await _check_limit(context, request.limit)
        views = self._shard.need_views()
        if views is None:
            yield pb.InspectNeedsResponse(header=pb.InspectNeedsHeader())
            return
        rows, explanations = views.selected(request), self._shard.explanations
        yield pb.InspectNeedsResponse(header=views.header(len(rows)))
        until = explanations.deadline()
        for row in rows[: request.limit or None].tolist():
            view = views.view(row)
            if request.with_remedies and not view.satisfied and views.basis is not None:
                view.explanation.CopyFrom(await explanations.of(views.basis, row, until))
            yield pb.InspectNeedsResponse(need=view)

    async def ListMachines(  # noqa: N802
        self, request: pb.ListMachinesRequest, context: Context
    ) -> AsyncIterator[pb.ListMachinesResponse]:
        """The machines of this shard by id, in batches."""
        await require(context, SHARD_READ, "ListMachines")
        await _check_limit(context, request.limit)
        unknown = [state for state in request.states if int(state) not in _STATES]
        if unknown:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"state {unknown[0]} does not exist: use 1 (Speculative) to 8 (Failed)",
            )
        fleet = self._shard.fleet()
        rows = select(fleet, request)[: request.limit or None].tolist()
        for start in range(0, len(rows), _BATCH):
            batch = pb.ListMachinesResponse()
            for row in rows[start : start + _BATCH]:
                machine = self._shard.machine(fleet.ids[row])
                if machine is not None:
                    batch.machines.append(machine_to_proto(machine))
            yield batch

    async def WatchDecisions(  # noqa: N802
        self, request: pb.WatchDecisionsRequest, context: Context
    ) -> AsyncIterator[pb.Decision]:
        """Decisions as they happen, until the caller hangs up."""
        await require(context, SHARD_READ, "WatchDecisions")
        decisions = self._shard.decisions
        cursor = decisions.count
        # So that a caller knows from when on nothing escapes it.
        await context.send_initial_metadata(())
        if request.since_cycle > 0:
            remembered, cursor = decisions.since(0, request.since_cycle)
            for decision in remembered:
                yield decision_to_proto(decision)
        while True:
            await decisions.beyond(cursor)
            news, cursor = decisions.since(cursor)
            for decision in news:
                yield decision_to_proto(decision)

    async def ExportScenario(  # noqa: N802
        self, request: pb.ExportScenarioRequest, context: Context
    ) -> AsyncIterator[pb.ExportScenarioChunk]:
        """The present state as a scenario file."""
        await require(context, SHARD_READ, "ExportScenario")
        fleet, demand, name = self._shard.fleet(), self._shard.demand(), self._shard.shard_id
        try:
            pieces = await self._offload(lambda: list(scenario_pieces(fleet, demand, name)))
        except ExportError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        for piece in pieces:
            yield pb.ExportScenarioChunk(data=piece)


def select(fleet: MachineColumns, request: pb.ListMachinesRequest) -> I64:
    """Rows of the machines that pass the filters, by id."""
    rows = np.asarray(fleet.order, np.int64)
    if request.states:
        rows = rows[np.isin(fleet.state[rows], list(request.states))]
    if request.cluster_id:
        rows = rows[fleet.cluster[rows] == _number(fleet, request.cluster_id)]
    if request.instance_type:
        classes = fleet.classes
        offered = np.array([o[1] == request.instance_type for o in classes.offerings], np.bool_)
        rows = rows[offered[classes.offering[fleet.cls[rows]]]] if len(offered) else rows[:0]
    return rows


def decision_to_proto(decision: Decision) -> pb.Decision:
    """A decision as it is sent."""
    return pb.Decision(
        cycle=decision.cycle,
        unix_nanos=decision.unix_nanos,
        kind=decision.kind,
        machine_id=decision.machine_id,
        cluster_id=decision.cluster_id,
        profile_fingerprint=decision.profile_fingerprint,
        reason=decision.reason,
        cost_per_hour=decision.cost_per_hour,
        outcome=decision.outcome,
    )


def _number(fleet: MachineColumns, cluster: str) -> int:
    # -1 is how an unbound machine looks, and no cluster that was asked for.
    found = fleet.symbols.clusters.find(cluster)
    return found if found >= 0 else -2


async def _check_limit(context: Context, limit: int) -> None:
    if limit < 0:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"limit {limit} is negative: use 0 for no limit"
        )
