"""Lines over gRPC. Many clusters share a connection, each with a stream of its own.

With TLS a certificate stands for one cluster; a path with `{cluster}` in it names one per cluster,
and then each cluster has its own connection.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from bigfleet.simcluster.errors import LineClosedError
from bigfleet.wire.channel import open_channel
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import shard_pb2 as pb

METHOD: Final = "/bigfleet.v1alpha1.Shard/Session"
STREAMS_PER_CHANNEL: Final = 64
_FAREWELL_SECONDS: Final = 1.0

_Call = grpc.aio.StreamStreamCall[bytes, pb.ShardMessage]
Credentials = Callable[[str], grpc.ChannelCredentials | None]


def credentials_from(cert: str | None, key: str | None, ca: str | None) -> tuple[Credentials, bool]:
    """Credentials per cluster of `--tls-*`, and whether each cluster has its own."""
    own = any("{cluster}" in (path or "") for path in (cert, key, ca))

    def files(cluster_id: str) -> TlsFiles | None:
        paths = ((path or "").replace("{cluster}", cluster_id) for path in (cert, key, ca))
        return TlsFiles.of(*paths)

    if own:
        return (lambda cluster_id: _read(files(cluster_id))), True
    shared = _read(files(""))
    return (lambda _: shared), False


def _read(files: TlsFiles | None) -> grpc.ChannelCredentials | None:
    return None if files is None else files.read()


class GrpcDial:
    """Lines to a shard at an address."""

    def __init__(
        self, address: str, credentials: Credentials | None = None, *, per_cluster: bool = False
    ) -> None:
        self._address = address
        self._credentials: Credentials = credentials or (lambda _: None)
        self._per_cluster = per_cluster
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._place: dict[str, int] = {}
        self._places = itertools.count()

    async def __call__(self, cluster_id: str) -> GrpcLine:
        """A new line on the cluster's connection, which is dialled when first used."""
        place = self._place.get(cluster_id)
        if place is None:
            place = self._place[cluster_id] = next(self._places)
        name = cluster_id if self._per_cluster else str(place // STREAMS_PER_CHANNEL)
        channel = self._channels.get(name)
        if channel is None:
            channel = open_channel(self._address, self._credentials(cluster_id))
            self._channels[name] = channel
        start: grpc.aio.StreamStreamMultiCallable[bytes, pb.ShardMessage] = channel.stream_stream(
            METHOD, None, pb.ShardMessage.FromString
        )
        return GrpcLine(start())

    async def close(self) -> None:
        """All connections end."""
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            await channel.close()


class GrpcLine:
    """One stream.

    Who is cancelled while it reads or writes does not cancel the stream with it, as the library
    would: the stream has to outlive its tasks for a moment, to end in order.
    """

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._reading: asyncio.Task[object] | None = None

    async def send(self, message: pb.OperatorMessage) -> None:
        """Hand over a frame; returns when the transport has taken it."""
        await self.send_bytes(message.SerializeToString())

    async def send_bytes(self, frame: bytes) -> None:
        """Hand over bytes as a frame."""
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
        """The next frame; None when the shard ended it in order."""
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
