"""The operator's end of a session, when the other end says what is not a frame, or refuses."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio
import pytest

from bigfleet.wire.channel import open_channel
from bigfleet.wire.session import GrpcSessionStream, StreamClosedError, open_session_stream
from bigfleet_api.v1alpha1 import shard_pb2 as pb

Context = grpc.aio.ServicerContext[bytes, bytes]


async def _gibberish(frames: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
    yield b"\xff" * 20
    async for _ in frames:
        pass


async def _refusing(frames: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
    async for frame in frames:
        if frame:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the certificate is another's")
        yield b""


async def _talk(line: GrpcSessionStream) -> None:
    while True:
        await line.send(pb.OperatorMessage(reclaim_ack=pb.ReclaimAck(instruction_id="a" * 100)))


async def _serve(
    session: Callable[[AsyncIterator[bytes], Context], AsyncIterator[bytes]],
) -> tuple[grpc.aio.Server, str]:
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(session)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bigfleet.v1alpha1.Shard", {"Session": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, f"127.0.0.1:{port}"


async def test_a_frame_that_cannot_be_decoded_ends_the_line_instead_of_deafening_it() -> None:
    server, address = await _serve(_gibberish)
    async with open_channel(address, None) as channel:
        line = open_session_stream(channel)
        await line.send(pb.OperatorMessage(hello=pb.Hello(cluster_id="c-1")))
        async with asyncio.timeout(10):
            with pytest.raises(StreamClosedError, match="cannot be decoded") as ended:
                await line.receive()
        assert ended.value.code == "INTERNAL"
    await server.stop(None)


async def test_a_refusal_is_told_as_it_was_said_to_who_is_writing() -> None:
    server, address = await _serve(_refusing)
    async with open_channel(address, None) as channel, asyncio.timeout(20):
        for _ in range(30):
            with pytest.raises(StreamClosedError, match="another's") as ended:
                await _talk(open_session_stream(channel))
            assert ended.value.code == "PERMISSION_DENIED"
    await server.stop(None)
