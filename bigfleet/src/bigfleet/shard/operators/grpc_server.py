"""Sessions over gRPC: one call is one stream, and the end of a session its status.

Frames come as bytes, so that a large roll-up is decoded away from the event loop, and one beyond
the limits not at all. The first frame, a Hello, has to be small. Listening and TLS are left to the
server's owner.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from bigfleet.observe.process import Offload
from bigfleet.shard.operators.errors import SessionEnd
from bigfleet.shard.ports import OversizedRollUp, Stream
from bigfleet.wire.identity import identity_of
from bigfleet.wire.rollup_limits import RollUpLimits, size_of_rollup
from bigfleet_api.v1alpha1 import shard_pb2 as pb

SERVICE: Final = "bigfleet.v1alpha1.Shard"
LARGE_BYTES: Final = 256 * 1024
"""From here on a frame is decoded off the event loop."""
LARGEST_HELLO: Final = 64 * 1024
STATUS_SECONDS: Final = 5.0
"""How long an operator may take to be told why its session ends."""
_BREAK_SECONDS: Final = 0.05
"""A connection that breaks ends the stream as an operator does who closes it in order; that the
call is cancelled follows within a millisecond, and nothing but that tells them apart."""

Context = grpc.aio.ServicerContext[bytes, bytes]
IdentityOf = Callable[[Context], str | None]
"""The peer's single `bigfleet://` name; empty for none or several; None on plaintext."""


class StreamServer(Protocol):
    """The part that serves streams."""

    async def serve(self, stream: Stream) -> None:
        """Serve one stream to its end."""


class GrpcStream:
    """One call as a stream of frames."""

    def __init__(
        self, context: Context, identity: str | None, offload: Offload, limits: RollUpLimits
    ) -> None:
        self.identity = identity
        self._context = context
        self._offload = offload
        self._limits = limits
        self._is_first = True

    async def receive(self) -> pb.OperatorMessage | OversizedRollUp | None:
        """The next frame; None when the operator closed its side in order."""
        # What marks the end is not a message, which the stubs of grpc do not say.
        raw: bytes | object = await self._context.read()
        if not isinstance(raw, bytes):
            await asyncio.sleep(_BREAK_SECONDS)
            return None
        is_first, self._is_first = self._is_first, False
        if is_first and len(raw) > LARGEST_HELLO:
            raise SessionEnd(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"the first frame has {len(raw)} bytes: it must be a Hello, of at most "
                f"{LARGEST_HELLO}",
            )
        try:
            if len(raw) < LARGE_BYTES:
                return pb.OperatorMessage.FromString(raw)
            return await self._offload(lambda: self._decoded(raw))
        except DecodeError as error:
            raise SessionEnd(
                grpc.StatusCode.INVALID_ARGUMENT, f"a frame cannot be decoded: {error}"
            ) from error

    def _decoded(self, raw: bytes) -> pb.OperatorMessage | OversizedRollUp:
        size = size_of_rollup(raw)
        problem = None if size is None else self._limits.problem(size)
        if size is None or problem is None:
            return pb.OperatorMessage.FromString(raw)
        cluster = size.cluster_id.decode(errors="replace")
        return OversizedRollUp(cluster, size.timestamp_unix_nanos, problem)

    async def send(self, message: pb.ShardMessage) -> None:
        """Hand over a frame; returns when the transport has taken it."""
        await self._context.write(message.SerializeToString())


def add_sessions(
    server: grpc.aio.Server,
    sessions: StreamServer,
    offload: Offload,
    name_of: IdentityOf = identity_of,
    limits: RollUpLimits | None = None,
) -> None:
    """Serve `Shard.Session` on a server that has not been started."""

    async def session(_requests: object, context: Context) -> None:
        # Sent apart: while the first frame still carried them, no status could be sent.
        await context.send_initial_metadata(())
        stream = GrpcStream(context, name_of(context), offload, limits or RollUpLimits())
        status: tuple[grpc.StatusCode, str] | None = None
        try:
            await sessions.serve(stream)
        except SessionEnd as end:
            # Taken out of it: what it was raised through would keep the whole session alive.
            status = end.code, end.text
        if status is not None:
            # Who reads nothing takes no status either. The call is then over without it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATUS_SECONDS):
                    await context.abort(*status)

    # The stubs of grpc know handlers that yield their answers, not those that write them.
    behavior = cast("Callable[..., AsyncIterator[bytes]]", session)
    handler: grpc.RpcMethodHandler[bytes, bytes]
    handler = grpc.stream_stream_rpc_method_handler(behavior)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Session": handler}),)
    )
