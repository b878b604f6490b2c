"""One session's stream over gRPC, dialled out. The operator never listens for the shard.

A line is cut or ends once, and whoever waits on it then gets a LineClosedError with the status.
TLS files that changed are used by the next line; an open one is not cut for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from bigfleet.operator.errors import LineClosedError
from bigfleet.wire.channel import open_channel
from bigfleet.wire.tls import ClientTls
from bigfleet_api.v1alpha1 import shard_pb2 as pb

METHOD: Final = "/bigfleet.v1alpha1.Shard/Session"
_FAREWELL_SECONDS: Final = 1.0
_Call = grpc.aio.StreamStreamCall[bytes, pb.ShardMessage]


class GrpcDial:
    """Lines to the shard at an address; plaintext without TLS files."""

    def __init__(
        self,
        address: str,
        tls: ClientTls | None = None,
        on_fresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._address, self._tls, self._on_fresh = address, tls, on_fresh
        self._channel: grpc.aio.Channel | None = None

    async def __call__(self) -> GrpcLine:
        """A new line on the one connection, which is dialled when first used."""
        if self._tls is not None and self._tls.fresh():
            self._on_fresh()
            await self.close()
        if self._channel is None:
            credentials = None if self._tls is None else self._tls.credentials
            self._channel = open_channel(self._address, credentials)
        start: grpc.aio.StreamStreamMultiCallable[bytes, pb.ShardMessage] = (
            self._channel.stream_stream(METHOD, None, pb.ShardMessage.FromString)
        )
        return GrpcLine(start())

    async def close(self) -> None:
        """The connection ends."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


class GrpcLine:
    """One stream.

    Who is cancelled while it reads or writes does not cancel the stream with it, as the library
    would: the stream has to outlive its tasks for a moment, to end in order.
    """

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._reading: asyncio.Future[object] | None = None

    async def send(self, frame: bytes) -> None:
        """Hand over a frame; returns when the transport has taken it."""
        writing = asyncio.ensure_future(self._call.write(frame))
        writing.add_done_callback(_looked_at)
        try:
            await asyncio.shield(writing)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            raise await self._ended() from None
        except asyncio.CancelledError:
            await self._raise_if_own()
            raise

    async def receive(self) -> pb.ShardMessage | None:
        """The next frame; None when the shard ended the session in order."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
            self._reading.add_done_callback(_looked_at)
        reading = self._reading
        try:
            message = await asyncio.shield(reading)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise await self._ended() from None
        except asyncio.CancelledError:
            await self._raise_if_own()
            raise
        finally:
            if reading.done():
                self._reading = None
        if isinstance(message, pb.ShardMessage):
            return message
        ended = await self._ended()
        if ended.code == "OK":
            return None
        raise ended

    async def close(self) -> None:
        """Nothing more will come; the shard has a moment to end it in order."""
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await self._call.done_writing()
                while await self.receive() is not None:
                    pass
        except (TimeoutError, LineClosedError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        self.drop()

    def drop(self) -> None:
        """Cut it at once."""
        self._call.cancel()

    async def _raise_if_own(self) -> None:
        # Cutting the call cancels who waits on it, which must not look like a cancelled task.
        task = asyncio.current_task()
        if self._call.done() and task is not None and not task.cancelling():
            raise await self._ended() from None

    async def _ended(self) -> LineClosedError:
        code = await self._call.code()
        return LineClosedError(code.name, await self._call.details() or "")


def _looked_at(task: asyncio.Future[Any]) -> None:
    """Nobody may be left to ask how it ended."""
    if not task.cancelled():
        task.exception()
