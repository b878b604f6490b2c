"""Coordinators: calls go to the one that leads.

A call goes first to the address that answered last. One that does not lead names the leader and is
followed, at most three times per call; one that does not answer is passed over for the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from bigfleet.cli.ctl.calls.channels import Channels
from bigfleet.cli.ctl.calls.refusals import NoLeaderError, Peer, PeerCallError, call_error
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc

Q = TypeVar("Q")
A = TypeVar("A")
CoordinatorStub: TypeAlias = "rpc.CoordinatorAsyncStub"

MOST_HOPS: Final = 3


class Coordinators:
    """Whichever of the coordinators leads."""

    def __init__(self, wires: Channels, addresses: Sequence[str]) -> None:
        self._wires = wires
        self.addresses = tuple(addresses)
        self.leader = ""
        """The address that answered last; empty before the first answer."""

    def peer(self, address: str) -> Peer:
        """The coordinator at an address."""
        return Peer("coordinator", address, tls=self._wires.tls)

    async def call(
        self,
        pick: Callable[[CoordinatorStub], grpc.aio.UnaryUnaryMultiCallable[Q, A]],
        request: Q,
    ) -> A:
        """The leader's answer."""

        async def attempt(address: str) -> A:
            return await self.ask(address, pick, request)

        return await self._led(attempt)

    async def ask(
        self,
        address: str,
        pick: Callable[[CoordinatorStub], grpc.aio.UnaryUnaryMultiCallable[Q, A]],
        request: Q,
    ) -> A:
        """The answer of one coordinator, whether it leads or not."""
        stub: CoordinatorStub = rpc.CoordinatorStub(self._wires.to(address))
        try:
            return await pick(stub)(request, timeout=self._wires.seconds)
        except grpc.aio.AioRpcError as error:
            method = type(request).__name__.removesuffix("Request")
            raise call_error(self.peer(address), method, self._wires.seconds, error) from error

    async def snapshot(self) -> list[pb.SnapshotSaveChunk]:
        """All frames of a fresh snapshot."""

        async def attempt(address: str) -> list[pb.SnapshotSaveChunk]:
            stub: CoordinatorStub = rpc.CoordinatorStub(self._wires.to(address))
            call = stub.SnapshotSave(pb.SnapshotSaveRequest(), timeout=self._wires.seconds)
            try:
                return [frame async for frame in call]
            except grpc.aio.AioRpcError as error:
                peer = self.peer(address)
                raise call_error(peer, "SnapshotSave", self._wires.seconds, error) from error

        return await self._led(attempt)

    async def _led(self, attempt: Callable[[str], Awaitable[A]]) -> A:
        waiting, tried, hops = self._order(), set[str](), 0
        failures: list[PeerCallError] = []
        while waiting:
            address = waiting.pop(0)
            tried.add(address)
            try:
                answer = await attempt(address)
            except PeerCallError as error:
                if not (error.not_leader or error.silent):
                    raise
                failures.append(error)
                leader = error.leader if error.not_leader else ""
                if leader and leader not in tried:
                    if hops == MOST_HOPS:
                        break
                    hops += 1
                    waiting = [leader, *(one for one in waiting if one != leader)]
                continue
            self.leader = address
            return answer
        raise _no_leader(failures)

    def _order(self) -> list[str]:
        first = [self.leader] if self.leader else []
        return [*first, *(one for one in self.addresses if one != self.leader)]


def _no_leader(failures: Sequence[PeerCallError]) -> PeerCallError:
    """Why no coordinator answered as the leader."""
    last = failures[-1]
    followers = [error for error in failures if error.not_leader]
    if len(failures) == 1 and not followers:
        return last
    if not followers:
        each = "; ".join(f"{e.peer.address}: {_short(e)}" for e in failures)
        return PeerCallError(
            last.peer,
            last.code,
            f"no coordinator answers ({each}): check that they run, or name others with "
            "--coordinator",
        )
    addresses = ", ".join(error.peer.address for error in followers)
    silent = [error for error in failures if error.silent]
    if silent:
        away = "; ".join(f"{e.peer.address}: {_short(e)}" for e in silent)
        text = (
            f"the coordinators that answer do not lead ({addresses}), "
            f"and others do not answer ({away})"
        )
    else:
        text = f"no coordinator leads ({addresses})"
    return NoLeaderError(
        last.peer,
        last.code,
        f"{text}: an election takes a few seconds, so try again, or name other coordinators with "
        "--coordinator",
    )


def _short(error: PeerCallError) -> str:
    words = str(error).partition(": ")[2] or str(error)
    return words.partition(";")[0]
