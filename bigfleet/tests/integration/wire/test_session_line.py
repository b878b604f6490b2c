"""The operator's end of a session, when the other end says what is no frame."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from bigfleet.wire.channel import open_channel
from bigfleet.wire.session import LineClosedError, open_line
from bigfleet_api.v1alpha1 import shard_pb2 as pb

Context = grpc.aio.ServicerContext[bytes, bytes]


async def _gibberish(frames: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
    yield b"\xff" * 20
    async for _ in frames:
        pass


async def test_a_frame_nobody_can_decode_ends_the_line_instead_of_deafening_it() -> None:
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(_gibberish)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bigfleet.v1alpha1.Shard", {"Session": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", None) as channel:
        line = open_line(channel)
        await line.send(pb.OperatorMessage(hello=pb.Hello(cluster_id="c-1")))
        async with asyncio.timeout(10):
            with pytest.raises(LineClosedError, match="cannot be decoded") as ended:
                await line.receive()
        assert ended.value.code == "INTERNAL"
    await server.stop(None)
