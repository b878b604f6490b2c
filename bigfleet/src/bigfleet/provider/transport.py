"""How a call reaches a provider.

`Transport` is what the client needs: six calls that answer or raise CallError. A transport that
`ListsRaw` hands a list over as bytes, so that parsing half a million records never keeps the event
loop. `GrpcTransport` is the real one. When its TLS files change it opens a second channel for new
calls and closes the first when its last call has ended, so that nothing under way is cut. It never
repeats a call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar, runtime_checkable

import grpc
import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import ClientTls, TlsFiles
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2_grpc as rpc

Headers = tuple[tuple[str, str], ...]
_LIST: Final = "/bigfleet.v1alpha1.CapacityProvider/List"
_T = TypeVar("_T")


class CallError(Exception):
    """A call that ended with a status other than OK, or OK and without an answer."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code
        self.text = text


class Transport(Protocol):
    """The six calls. A call that takes longer than `seconds` ends DEADLINE_EXCEEDED."""

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        """Speculative to Idle."""

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Configured."""

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        """Configured to Idle."""

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Speculative."""

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """One machine."""

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        """Many machines."""

    async def close(self) -> None:
        """No more calls; those under way end CANCELLED."""


@runtime_checkable
class ListsRaw(Protocol):
    """A transport that can leave a list undecoded."""

    async def list_raw(self, request: pb.ListFilter, seconds: float) -> bytes:
        """Many machines, as the bytes of a MachineList."""


class _Line:
    """One channel and how many calls are on it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.stub: rpc.CapacityProviderAsyncStub = rpc.CapacityProviderStub(channel)
        self.list_raw: grpc.aio.UnaryUnaryMultiCallable[pb.ListFilter, bytes] = channel.unary_unary(
            _LIST, request_serializer=pb.ListFilter.SerializeToString
        )
        self.calls = 0


class GrpcTransport:
    """A provider behind an address; plaintext without TLS files."""

    def __init__(
        self,
        address: str,
        files: TlsFiles | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        headers: Callable[[], Headers | None] = lambda: None,
    ) -> None:
        self._address = address
        self._files, self._now = files, now
        self._tls: ClientTls | None = None
        self._headers = headers
        """What goes with a call that changes something."""
        self._closed = False
        self._line: _Line | None = None
        self._retired: set[_Line] = set()

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        """Speculative to Idle."""
        sent = self._headers()
        return await self._call(
            lambda line: line.stub.Create(request, timeout=seconds, metadata=sent)
        )

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Configured."""
        sent = self._headers()
        return await self._call(
            lambda line: line.stub.Configure(request, timeout=seconds, metadata=sent)
        )

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        """Configured to Idle."""
        sent = self._headers()
        return await self._call(
            lambda line: line.stub.Drain(request, timeout=seconds, metadata=sent)
        )

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Speculative."""
        sent = self._headers()
        return await self._call(
            lambda line: line.stub.Delete(request, timeout=seconds, metadata=sent)
        )

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """One machine."""
        return await self._call(lambda line: line.stub.Get(request, timeout=seconds))

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        """Many machines."""
        return await self._call(lambda line: line.stub.List(request, timeout=seconds))

    async def list_raw(self, request: pb.ListFilter, seconds: float) -> bytes:
        """Many machines, as the bytes of a MachineList."""
        return await self._call(lambda line: line.list_raw(request, timeout=seconds))

    async def close(self) -> None:
        """No more calls; those under way end CANCELLED."""
        self._closed = True
        lines = [*self._retired, *([self._line] if self._line else [])]
        self._line = None
        self._retired.clear()
        for line in lines:
            await line.channel.close()

    async def _call(self, start: Callable[[_Line], Awaitable[_T]]) -> _T:
        if self._is_closed():
            raise CallError(grpc.StatusCode.CANCELLED, "the client is closed")
        line = self._current()
        line.calls += 1
        try:
            answer = await start(line)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code(), error.details() or "no further detail") from error
        except asyncio.CancelledError:
            # Closing a channel cancels its calls, which must not look as if the caller's own task
            # had been cancelled.
            task = asyncio.current_task()
            if self._is_closed() and task is not None and not task.cancelling():
                raise CallError(grpc.StatusCode.CANCELLED, "the client was closed") from None
            raise
        finally:
            line.calls -= 1
            if self._retired:
                await self._close_idle()
        if answer is None:
            # What the library hands over instead of bytes that are not a message.
            raise CallError(grpc.StatusCode.OK, "the answer cannot be decoded")
        return answer

    async def _close_idle(self) -> None:
        for idle in [other for other in self._retired if not other.calls]:
            self._retired.discard(idle)
            await idle.channel.close()

    def _is_closed(self) -> bool:
        return self._closed

    def _current(self) -> _Line:
        credentials = None
        if self._files is not None:
            tls = self._followed(self._files)
            if tls.fresh() and self._line is not None:
                # An idle channel is closed at the end of the next call on the new one.
                self._retired.add(self._line)
                self._line = None
            credentials = tls.credentials
        if self._line is None:
            self._line = _Line(open_channel(self._address, credentials))
        return self._line

    def _followed(self, files: TlsFiles) -> ClientTls:
        """Read first by the first call: they may be broken when a provider is registered."""
        if self._tls is None:
            try:
                self._tls = ClientTls(files, self._now)
            except TlsFilesError as error:
                raise CallError(grpc.StatusCode.UNAVAILABLE, str(error)) from error
        return self._tls
