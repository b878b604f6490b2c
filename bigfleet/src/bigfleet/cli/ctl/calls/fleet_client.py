"""The fleet as one command sees it: whom it may call, and shards one by one or all at once.

Shards are dialled where they registered with the coordinator, or where `--shard-addr` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import grpc
import grpc.aio

from bigfleet.cli.ctl.calls.channels import Channels
from bigfleet.cli.ctl.calls.coordinator_client import Coordinators
from bigfleet.cli.ctl.calls.refusals import Peer, PeerCallError, call_error
from bigfleet.cli.ctl.context import DEFAULT_COORDINATOR, Options
from bigfleet.cli.errors import FailureError, InputError
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc
from bigfleet_base.addresses import AddressError, shard_address

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

_AT_ONCE: Final = 16
"""Shards asked at the same time."""


@dataclass(frozen=True, slots=True)
class ShardReply(Generic[T]):
    """What one shard said, or why it said nothing."""

    peer: Peer
    answer: T | None = None
    trouble: PeerCallError | None = None


class ShardLine:
    """One shard that can be called."""

    def __init__(self, peer: Peer, wires: Channels) -> None:
        self.peer = peer
        self._wires = wires

    @property
    def read(self) -> rpc.ShardReadAsyncStub:
        """Looking into it."""
        return rpc.ShardReadStub(self._channel())

    @property
    def admin(self) -> rpc.ShardAdminAsyncStub:
        """Running it."""
        return rpc.ShardAdminStub(self._channel())

    def _channel(self) -> grpc.aio.Channel:
        if not self.peer.name:
            return self._wires.to(self.peer.address)
        try:
            address = shard_address(self.peer.name, self.peer.address, "--shard-addr")
        except AddressError as error:
            raise PeerCallError(self.peer, "UNAVAILABLE", str(error)) from error
        return self._wires.to(address)

    async def call(self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q) -> A:
        """One answer."""
        try:
            return await method(request, timeout=self._wires.seconds)
        except grpc.aio.AioRpcError as error:
            raise self._meaning(error, request) from error

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Q, A], request: Q
    ) -> AsyncIterator[A]:
        """All answers, within the deadline."""
        call = method(request, timeout=self._wires.seconds)
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise self._meaning(error, request) from error
        finally:
            call.cancel()

    async def follow(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Q, A],
        request: Q,
        opened: Callable[[], None],
    ) -> AsyncIterator[A]:
        """Answers for as long as there are any; `opened` is told when the shard listens."""
        call = method(request)
        try:
            # No deadline: a shard that has decided nothing yet may say nothing at all.
            await call.initial_metadata()
            # A call that failed has metadata as well: none.
            if not call.done():
                opened()
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise self._meaning(error, request) from error
        finally:
            call.cancel()

    def _meaning(self, error: grpc.aio.AioRpcError, request: object) -> PeerCallError:
        method = type(request).__name__.removesuffix("Request")
        return call_error(self.peer, method, self._wires.seconds, error)


class Fleet:
    """Everybody who can be called, for as long as one command runs."""

    def __init__(self, options: Options, wires: Callable[[], Channels]) -> None:
        self._options = options
        self._make = wires

    async def __aenter__(self) -> Self:
        self._wires = self._make()
        self._coordinators = Coordinators(
            self._wires, self._options.coordinators or (DEFAULT_COORDINATOR,)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._wires.close()

    @property
    def has_coordinator(self) -> bool:
        """Whether a coordinator is to be asked at all."""
        return bool(self._options.coordinators) or not self._options.shards

    @property
    def names_shards(self) -> bool:
        """Whether the shards to be asked were named by address."""
        return bool(self._options.shards)

    @property
    def coordinator(self) -> Coordinators:
        """The coordinator; refused when only shards were named."""
        if not self.has_coordinator:
            raise InputError("this needs a coordinator: add --coordinator host:port")
        return self._coordinators

    async def shards(self, wanted: Sequence[str] = ()) -> list[ShardLine]:
        """The shards with these ids, or all there are."""
        if self._options.shards:
            if wanted:
                raise InputError("--shard-addr names the shard already: leave --shard out")
            return [self.line(address=address) for address in self._options.shards]
        answer = await self.coordinator.call(lambda s: s.ListShards, pb.ListShardsRequest())
        known = {entry.shard_id: entry.address for entry in answer.shards}
        if not known:
            raise FailureError(
                "no shard has registered yet: start one with `bigfleet shard --coordinator-addr "
                "...`, or name one with --shard-addr"
            )
        for shard in wanted:
            _check(shard, known)
        chosen = wanted or list(known)
        return [self.line(known[shard], shard) for shard in dict.fromkeys(chosen)]

    async def shard(self, wanted: str) -> ShardLine:
        """Exactly one shard: the one with this id, or the only one there is."""
        found = await self.shards([wanted] if wanted else [])
        if len(found) > 1:
            names = ", ".join(line.peer.title for line in found)
            raise InputError(f"there are {len(found)} shards: say which with --shard ({names})")
        return found[0]

    async def check_shard(self, wanted: str) -> None:
        """Refuse an id that no shard has: nothing of it is not nothing of a shard."""
        answer = await self.coordinator.call(lambda s: s.ListShards, pb.ListShardsRequest())
        _check(wanted, [entry.shard_id for entry in answer.shards])

    def line(self, address: str, name: str = "") -> ShardLine:
        """A shard at an address."""
        return ShardLine(Peer("shard", address, name, self._wires.tls), self._wires)


def _check(shard: str, known: Collection[str]) -> None:
    if shard not in known:
        there = f"there are {', '.join(known)}" if known else "none has registered"
        raise InputError(f"there is no shard {shard!r}: {there}")


async def each(
    lines: Sequence[ShardLine], body: Callable[[ShardLine], Awaitable[T]]
) -> list[ShardReply[T]]:
    """Ask several shards at once; what one of them fails at does not keep the others."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask(line: ShardLine) -> ShardReply[T]:
        async with gate:
            try:
                return ShardReply(line.peer, await body(line))
            except PeerCallError as error:
                return ShardReply(line.peer, trouble=error)

    return list(await asyncio.gather(*(ask(line) for line in lines)))
