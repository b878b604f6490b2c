"""The few things a person may tell a shard, over the wire.

Here requests are checked and answers written; what a pause, a forgotten cluster or a drained
machine means is the shard's. Everything done is logged with who asked for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import grpc
import grpc.aio

from bigfleet.model import Machine, MachineState
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.wire.identity import SHARD_ADMIN, SHARD_STATUS, Surface, identity_of, require
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc

Context = grpc.aio.ServicerContext[object, object]
Code = grpc.StatusCode

SERVICE: Final = "bigfleet.v1alpha1.ShardAdmin"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderState:
    """How one provider looks from a shard."""

    name: str
    address: str
    reachable: bool
    last_list_ns: int = 0
    machines: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class ShardState:
    """How a shard is doing."""

    shard_id: str
    epoch: int
    cycle: int
    paused: bool = False
    pause_reason: str = ""
    dry_run: bool = False
    sessions: Sequence[str] = ()
    providers: Sequence[ProviderState] = ()
    rails: Sequence[str] = ()
    """What holds something back at the moment, in words."""


class AdminTarget(Protocol):
    """What a shard lets an administrator do. What is awaited is durable when it returns."""

    def state(self) -> ShardState:
        """How it is doing."""

    def has_session(self, cluster: str) -> bool:
        """Whether the cluster's operator is connected."""

    def knows_cluster(self, cluster: str) -> bool:
        """Whether it has demand or machines of this cluster."""

    def machine(self, machine_id: str) -> Machine | None:
        """One machine as it is now."""

    async def pause(self, reason: str) -> None:
        """Execute nothing until resumed."""

    async def resume(self) -> None:
        """Execute again."""

    async def forget_cluster(self, cluster: str) -> None:
        """Drop its demand and open its machines to reclaim."""

    def check_acting(self, provider: str) -> None:
        """NotActingError where nothing is done to this provider's machines now."""

    async def drain_machine(self, machine_id: str) -> None:
        """Reclaim a Configured machine now, else DrainRefusedError."""

    async def exclude_machine(self, machine_id: str, excluded: bool) -> None:
        """Keep a machine out of every decision, or let it in again."""


class ShardAdminServicer(rpc.ShardAdminServicer):
    """For admin; the status also for readonly."""

    def __init__(self, shard: AdminTarget) -> None:
        self._shard = shard

    async def Pause(self, request: pb.PauseRequest, context: Context) -> pb.PauseResponse:  # noqa: N802
        """Keep deciding, but execute nothing until resumed."""
        await self._admit(context, "Pause", reason=request.reason)
        kept = "it is paused from now on, but a restart would not know"
        await _written(context, self._shard.pause(request.reason), kept)
        return pb.PauseResponse()

    async def Resume(self, request: pb.ResumeRequest, context: Context) -> pb.ResumeResponse:  # noqa: N802
        """Execute again."""
        await self._admit(context, "Resume")
        await _written(context, self._shard.resume())
        return pb.ResumeResponse()

    async def ForgetCluster(  # noqa: N802
        self, request: pb.ForgetClusterRequest, context: Context
    ) -> pb.ForgetClusterResponse:
        """Drop the demand of a cluster that is gone for good."""
        cluster = request.cluster_id
        await self._admit(context, "ForgetCluster", cluster=cluster)
        if not cluster:
            await context.abort(Code.INVALID_ARGUMENT, "cluster_id is empty: name the cluster")
        if not request.confirm:
            await context.abort(
                Code.INVALID_ARGUMENT,
                f"forgetting {cluster!r} opens all its machines to reclaim: set confirm",
            )
        if self._shard.has_session(cluster):
            await context.abort(
                Code.FAILED_PRECONDITION,
                f"cluster {cluster!r} has a session: stop its operator first",
            )
        if not self._shard.knows_cluster(cluster):
            await context.abort(
                Code.NOT_FOUND,
                f"this shard knows no cluster {cluster!r}: it has no demand and no machines of it, "
                "so there is nothing to forget",
            )
        await _written(context, self._shard.forget_cluster(cluster))
        return pb.ForgetClusterResponse()

    async def GetStatus(self, request: pb.GetStatusRequest, context: Context) -> pb.ShardStatus:  # noqa: N802
        """How the shard is doing."""
        await require(context, SHARD_STATUS, "GetStatus")
        return status_to_proto(self._shard.state())

    async def DrainMachine(  # noqa: N802
        self, request: pb.DrainMachineRequest, context: Context
    ) -> pb.DrainMachineResponse:
        """Reclaim one machine now, and keep it out afterwards if asked to."""
        await self._admit(context, "DrainMachine", machine=request.machine_id)
        machine = await self._machine(request.machine_id, context)
        if machine.state is not MachineState.CONFIGURED:
            await context.abort(
                Code.FAILED_PRECONDITION,
                f"machine {machine.id!r} is {machine.state.title}: only a Configured one can be "
                "drained; exclude it instead",
            )
        try:
            self._shard.check_acting(machine.provider)
            if request.exclude:
                # First, so that no cycle in between hands the machine to another need.
                await _written(context, self._shard.exclude_machine(machine.id, True))
            await self._shard.drain_machine(machine.id)
        except NotActingError as error:
            await context.abort(Code.FAILED_PRECONDITION, str(error))
        except DrainRefusedError as error:
            also = " (it is excluded from now on)" if request.exclude else ""
            await context.abort(Code.ABORTED, f"{error}{also}")
        return pb.DrainMachineResponse()

    async def ExcludeMachine(  # noqa: N802
        self, request: pb.ExcludeMachineRequest, context: Context
    ) -> pb.ExcludeMachineResponse:
        """Keep a machine out of every decision, or let it in again."""
        await self._admit(context, "ExcludeMachine", machine=request.machine_id)
        machine = await self._machine(request.machine_id, context)
        await _written(context, self._shard.exclude_machine(machine.id, request.exclude))
        return pb.ExcludeMachineResponse()

    async def _admit(
        self, context: Context, method: str, surface: Surface = SHARD_ADMIN, **about: str
    ) -> None:
        await require(context, surface, method)
        who = identity_of(context) or "plaintext"
        _log.info("admin request", extra={"method": method, "identity": who, **about})

    async def _machine(self, machine_id: str, context: Context) -> Machine:
        if not machine_id:
            await context.abort(Code.INVALID_ARGUMENT, "machine_id is empty: name the machine")
        machine = self._shard.machine(machine_id)
        if machine is None:
            await context.abort(Code.NOT_FOUND, f"this shard has no machine {machine_id!r}")
            raise AssertionError("abort does not return")
        return machine


async def _written(
    context: Context, work: Awaitable[None], otherwise: str = "nothing is changed"
) -> None:
    """Do what has to be on disk when it is answered; `otherwise` is what holds when it is not."""
    try:
        await work
    except OSError as error:
        _log.error("admin request not persisted", extra={"error": str(error)})
        await context.abort(Code.UNAVAILABLE, f"{otherwise}: {error}")


def status_to_proto(state: ShardState) -> pb.ShardStatus:
    """A state as it is sent."""
    return pb.ShardStatus(
        shard_id=state.shard_id,
        epoch=state.epoch,
        cycle=state.cycle,
        paused=state.paused,
        pause_reason=state.pause_reason,
        dry_run=state.dry_run,
        sessions=sorted(state.sessions),
        providers=[
            pb.ProviderStatus(
                name=provider.name,
                address=provider.address,
                reachable=provider.reachable,
                last_list_unix_ns=provider.last_list_ns,
                machines=provider.machines,
                last_error=provider.last_error,
            )
            for provider in state.providers
        ],
        rails=state.rails,
    )
