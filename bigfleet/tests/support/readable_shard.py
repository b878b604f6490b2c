"""A shard as the services that people call need it, served over real gRPC."""

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
import grpc.aio
import numpy as np
import pytest

from bigfleet.decision import Policy
from bigfleet.explanation import Situation
from bigfleet.model import Machine, Need
from bigfleet.model.columns import Demand, MachineColumns
from bigfleet.observe.process import SystemClock
from bigfleet.shard.act.decisions import Decisions
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.shard.explain.ledger import Ledger
from bigfleet.shard.explain.need_explanations import Basis, NeedExplanations
from bigfleet.shard.explain.views import NeedViews
from bigfleet.shard.server import admin_service, read_service
from bigfleet.shard.server.admin_service import ProviderState, ShardAdminServicer, ShardState
from bigfleet.shard.server.read_service import ShardReadServicer
from bigfleet.wire.channel import open_channel
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc
from living import Living
from worlds import NOW, A, B

T = TypeVar("T")
Code = grpc.StatusCode


async def inline(function: Callable[[], T]) -> T:
    return function()


@dataclass
class Shard:
    """What the servicers need of a shard."""

    shard_id: str = "shard-a"
    machines: list[Machine] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    decisions: Decisions = field(default_factory=Decisions)
    living: Living = field(default_factory=Living)
    views: NeedViews | None = None
    sessions: set[str] = field(default_factory=set)
    done: list[tuple[object, ...]] = field(default_factory=list)
    refusal: DrainRefusedError | None = None
    disk_full: bool = False
    _explanations: NeedExplanations = field(
        default_factory=lambda: NeedExplanations(inline, SystemClock(), lambda _seconds: None)
    )

    def _write(self) -> None:
        if self.disk_full:
            raise OSError(28, "no room left")

    def cycle(self) -> None:
        carry = self.living.carry
        plan = self.living.plan(self.machines, self.needs, NOW)
        decided_on = Situation(plan.fleet, plan.demand, Policy(), carry, NOW)
        basis = Basis(decided_on, plan, np.zeros(0, np.int64), frozenset())
        ledger = Ledger()
        ledger.update(plan, 0.0)
        self.views = NeedViews(7, NOW, plan, Policy(), ledger.ages, basis)

    def need_views(self) -> NeedViews | None:
        return self.views

    @property
    def explanations(self) -> NeedExplanations:
        return self._explanations

    def fleet(self) -> MachineColumns:
        return self.living._put(self.machines).snapshot()

    def machine(self, machine_id: str) -> Machine | None:
        return next((m for m in self.machines if m.id == machine_id), None)

    def demand(self) -> Demand:
        return Demand.of(self.needs, {}, self.living.symbols)

    def state(self) -> ShardState:
        provider = ProviderState("aws", "host:9001", True, 5, 6, "")
        return ShardState(
            self.shard_id, 3, 7, True, "because", False, ["b", "a"], [provider], ["a rail"]
        )

    def has_session(self, cluster: str) -> bool:
        return cluster in self.sessions

    def knows_cluster(self, cluster: str) -> bool:
        return cluster in (A, B)

    async def pause(self, reason: str) -> None:
        self._write()
        self.done.append(("pause", reason))

    async def resume(self) -> None:
        self._write()
        self.done.append(("resume",))

    async def forget_cluster(self, cluster: str) -> None:
        self._write()
        self.done.append(("forget", cluster))

    def check_acting(self, provider: str) -> None:
        if isinstance(self.refusal, NotActingError):
            raise self.refusal

    async def drain_machine(self, machine_id: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.done.append(("drain", machine_id))

    async def exclude_machine(self, machine_id: str, excluded: bool) -> None:
        self._write()
        self.done.append(("exclude", machine_id, excluded))


@contextlib.asynccontextmanager
async def serving_shard(shard: Shard, tls: ServerTls | None = None) -> AsyncIterator[str]:
    server = WireServer([read_service.SERVICE, admin_service.SERVICE], tls)
    rpc.add_ShardReadServicer_to_server(ShardReadServicer(shard, inline), server.grpc)
    rpc.add_ShardAdminServicer_to_server(ShardAdminServicer(shard), server.grpc)
    address = await server.start("127.0.0.1:0")
    try:
        yield address
    finally:
        await server.stop(0)


class Caller:
    """Both services of one shard."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.read: rpc.ShardReadAsyncStub = rpc.ShardReadStub(channel)
        self.admin: rpc.ShardAdminAsyncStub = rpc.ShardAdminStub(channel)


@contextlib.asynccontextmanager
async def called(shard: Shard) -> AsyncIterator[Caller]:
    async with serving_shard(shard) as address, open_channel(address, None) as channel:
        yield Caller(channel)


async def refused(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code(), error.value.details() or ""


async def all_of(call: AsyncIterable[T]) -> list[T]:
    return [frame async for frame in call]
