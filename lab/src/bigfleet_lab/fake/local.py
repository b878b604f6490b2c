"""Calls to a provider in the same process, without a socket.

The same service answers as behind the port, so codes, fences and idempotency are the same. There is
no deadline: on virtual time a call takes none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import grpc

from bigfleet.provider.transport import CallError
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import Refusal
from bigfleet_providerkit.service.service import ProviderService

_STATUS: Final = {int(status.value[0]): status for status in grpc.StatusCode}
_T = TypeVar("_T")


class LocalTransport:
    """The six calls, as function calls."""

    def __init__(self, service: ProviderService) -> None:
        self._service = service
        self._closed = False

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        """Speculative to Idle."""
        return await self._answered(lambda: self._service.create(request))

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Configured."""
        return await self._answered(lambda: self._service.configure(request))

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        """Configured to Idle."""
        return await self._answered(lambda: self._service.drain(request))

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Speculative."""
        return await self._answered(lambda: self._service.delete(request))

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """One machine."""
        return await self._answered(lambda: self._service.get(request))

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        """Many machines."""
        return await self._answered(lambda: self._service.list(request))

    async def close(self) -> None:
        """No more calls."""
        self._closed = True

    async def _answered(self, call: Callable[[], Awaitable[_T]]) -> _T:
        if self._closed:
            raise CallError(grpc.StatusCode.CANCELLED, "the client is closed")
        try:
            return await call()
        except Refusal as refusal:
            raise CallError(_STATUS[int(refusal.code)], refusal.text) from refusal
