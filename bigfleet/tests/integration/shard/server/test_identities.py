"""Who may open a session, and what everybody may ask, over real mutual TLS."""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bigfleet.shard.operators.grpc_server import SERVICE, add_sessions
from bigfleet.wire.channel import open_channel
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet_api.v1alpha1 import shard_pb2, shard_pb2_grpc
from certificates import write_files
from operators import PATIENCE, Desk, hello

T = TypeVar("T")
NAMES = {
    "own cluster": ["bigfleet://cluster/c-1"],
    "another cluster": ["bigfleet://cluster/c-2"],
    "longer cluster": ["bigfleet://cluster/c-1/"],
    "shard": ["bigfleet://shard/c-1"],
    "readonly": ["bigfleet://readonly"],
    "admin": ["bigfleet://admin"],
    "none": [],
    "two": ["bigfleet://cluster/c-1", "bigfleet://cluster/c-1"],
}


async def inline(function: Callable[[], T]) -> T:
    return function()


@contextlib.asynccontextmanager
async def dialled(desk: Desk, folder: Path, names: list[str]) -> AsyncIterator[grpc.aio.Channel]:
    """A shard's sessions, and a connection with these names."""
    ca = trustme.CA()
    server = WireServer([SERVICE], ServerTls(write_files(folder / "server", ca)))
    add_sessions(server.grpc, desk.sessions, inline)
    address = await server.start("127.0.0.1:0")
    try:
        async with open_channel(
            address, write_files(folder / "client", ca, names).read()
        ) as channel:
            yield channel
    finally:
        await server.stop(0)


async def opened(channel: grpc.aio.Channel) -> grpc.StatusCode | None:
    """None when a session of c-1 is opened, else how it is refused."""
    stub: shard_pb2_grpc.ShardAsyncStub = shard_pb2_grpc.ShardStub(channel)
    call = stub.Session(timeout=PATIENCE)
    await call.write(shard_pb2.OperatorMessage(hello=hello("c-1")))
    try:
        answer = await call.read()
    except grpc.aio.AioRpcError as error:
        return error.code()
    if isinstance(answer, shard_pb2.ShardMessage):
        assert answer.ack.echo == "hello"
        call.cancel()
        return None
    return await call.code()


@pytest.mark.parametrize("peer", NAMES)
async def test_only_the_operator_of_a_cluster_opens_its_session(
    tmp_path: Path, peer: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    caplog.set_level(logging.ERROR)
    async with dialled(desk, tmp_path, NAMES[peer]) as channel:
        code = await opened(channel)
    if peer == "own cluster":
        assert code is None
        return
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert [r.message for r in caplog.records] == ["operator session identity rejected"]


@pytest.mark.parametrize("peer", NAMES)
async def test_health_and_reflection_are_for_everybody(tmp_path: Path, peer: str) -> None:
    async with dialled(Desk(), tmp_path, NAMES[peer]) as channel:
        request = health_pb2.HealthCheckRequest(service="")
        answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=PATIENCE)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = await call.read()
        assert SERVICE in {s.name for s in listed.list_services_response.service}
        call.cancel()
