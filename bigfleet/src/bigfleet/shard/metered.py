"""Calls to providers, timed and counted by how they ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bigfleet.provider import CallError, Transport
from bigfleet.provider.transport import ListsRaw
from bigfleet_api.v1alpha1 import provider_pb2 as pb

T = TypeVar("T")
Count = Callable[[str, str, str, float], None]
"""Provider, method, status and seconds."""


class MeteredTransport:
    """A transport whose calls are counted."""

    def __init__(
        self, transport: Transport, provider: str, count: Count, timer: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._provider = provider
        self._count = count
        self._timer = timer

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        """Speculative to Idle."""
        return await self._timed("Create", self._transport.create(request, seconds))

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Configured."""
        return await self._timed("Configure", self._transport.configure(request, seconds))

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        """Configured to Idle."""
        return await self._timed("Drain", self._transport.drain(request, seconds))

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Speculative."""
        return await self._timed("Delete", self._transport.delete(request, seconds))

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """One machine."""
        return await self._timed("Get", self._transport.get(request, seconds))

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        """Many machines."""
        return await self._timed("List", self._transport.list(request, seconds))

    async def list_raw(self, request: pb.ListFilter, seconds: float) -> bytes:
        """Many machines, as bytes."""
        return await self._timed("List", self._raw(request, seconds))

    async def close(self) -> None:
        """No more calls."""
        await self._transport.close()

    async def _raw(self, request: pb.ListFilter, seconds: float) -> bytes:
        if isinstance(self._transport, ListsRaw):
            return await self._transport.list_raw(request, seconds)
        return (await self._transport.list(request, seconds)).SerializeToString()

    async def _timed(self, method: str, call: Awaitable[T]) -> T:
        begun, code = self._timer(), "CANCELLED"
        try:
            answer = await call
            code = "OK"
            return answer
        except CallError as error:
            code = error.code.name
            raise
        finally:
            self._count(self._provider, method, code, self._timer() - begun)
