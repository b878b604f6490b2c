"""How a report reaches a coordinator: one attempt at one address.

`Caller` is what the client needs; `GrpcCaller` is the real one, with a connection per address that
was ever asked. When its TLS files change, connections are made again with the next call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

import grpc
import grpc.aio

from bigfleet.shard.peers.errors import ReportError
from bigfleet.wire.channel import open_channel
from bigfleet.wire.tls import ClientTls, TlsFiles
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc

LEADER_KEY: Final = "bigfleet-leader"


class Caller(Protocol):
    """Calls ReportShard. It never calls twice."""

    async def report(self, address: str, report: pb.ShardReport, seconds: float) -> pb.ReportAck:
        """The answer, or a ReportError; longer than `seconds` is DEADLINE_EXCEEDED."""

    async def close(self) -> None:
        """No more calls."""


class GrpcCaller:
    """Coordinators over gRPC; plaintext without TLS files."""

    def __init__(
        self, files: TlsFiles | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tls = None if files is None else ClientTls(files, now)
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def report(self, address: str, report: pb.ShardReport, seconds: float) -> pb.ReportAck:
        """The answer of the coordinator at an address."""
        stub: rpc.CoordinatorAsyncStub = rpc.CoordinatorStub(await self._channel(address))
        try:
            answer: pb.ReportAck | None = await stub.ReportShard(report, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise ReportError(
                error.code().name, error.details() or "no further detail", _leader(error)
            ) from error
        if answer is None:
            # What the library hands over instead of bytes that are not a message.
            raise ReportError("INTERNAL", "the answer cannot be decoded")
        return answer

    async def close(self) -> None:
        """All connections end."""
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            await channel.close()

    async def _channel(self, address: str) -> grpc.aio.Channel:
        credentials = None
        if self._tls is not None:
            if self._tls.fresh():
                # One report at a time: nothing is under way that this could cut.
                await self.close()
            credentials = self._tls.credentials
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address, credentials)
        return channel


def _leader(error: grpc.aio.AioRpcError) -> str:
    for key, value in error.trailing_metadata() or ():
        if key == LEADER_KEY:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return ""
