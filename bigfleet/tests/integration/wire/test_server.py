"""The server every component runs, over real sockets: health, reflection, sizes, TLS."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import tls_server
from bigfleet.wire.channel import open_channel
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.identity import identity_of
from bigfleet.wire.server import ListenError, WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles
from certificates import damage_certificate, write_files, write_unknown_key

SHARD = "bigfleet.v1alpha1.Shard"
READ = "bigfleet.v1alpha1.ShardRead"
HERE = "127.0.0.1:0"
Status = health_pb2.HealthCheckResponse


@contextlib.asynccontextmanager
async def served(server: WireServer) -> AsyncIterator[str]:
    address = await server.start(HERE)
    try:
        yield address
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def dialled(address: str, files: TlsFiles | None = None) -> AsyncIterator[grpc.aio.Channel]:
    async with open_channel(address, files.read() if files else None) as channel:
        yield channel


async def health(channel: grpc.aio.Channel, service: str) -> int:
    request = health_pb2.HealthCheckRequest(service=service)
    answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=10)
    return int(answer.status)


async def alive(address: str, files: TlsFiles | None) -> bool:
    """Whether a fresh connection gets an answer."""
    async with dialled(address, files) as channel:
        try:
            return bool(await health(channel, "") == Status.SERVING)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return False


def add_echo(server: WireServer, call: Callable[[bytes, object], Awaitable[bytes]]) -> None:
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(call)
    server.grpc.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test.Echo", {"Call": handler}),)
    )


def echo(channel: grpc.aio.Channel) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary("/test.Echo/Call")


def handshake(address: str, files: TlsFiles, version: ssl.TLSVersion) -> bytes | None:
    """The server's certificate if a handshake in this version works, else None."""
    context = ssl.create_default_context(cafile=str(files.ca))
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(files.cert, files.key)
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            return secure.getpeercert(binary_form=True) if secure.recv(1) else None
    except (ssl.SSLError, OSError):
        return None


async def test_alive_at_once_and_each_service_ready_when_told() -> None:
    server = WireServer([SHARD, READ])
    async with served(server) as address, dialled(address) as channel:
        assert await health(channel, "") == Status.SERVING
        assert await health(channel, SHARD) == Status.NOT_SERVING
        await server.ready(True, [READ])
        assert await health(channel, READ) == Status.SERVING
        assert await health(channel, SHARD) == Status.NOT_SERVING
        await server.ready(True)
        assert await health(channel, SHARD) == Status.SERVING
        await server.ready(False)
        assert await health(channel, SHARD) == Status.NOT_SERVING
        assert await health(channel, "") == Status.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await health(channel, "bigfleet.v1alpha1.Nothing")
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_the_services() -> None:
    async with served(WireServer([SHARD, READ])) as address, dialled(address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        answer = await call.read()
        await call.done_writing()
        names = {service.name for service in answer.list_services_response.service}
        call.cancel()
    assert {SHARD, READ, "grpc.health.v1.Health"} <= names


async def test_large_messages_pass_and_too_large_ones_are_refused_by_name() -> None:
    async def size(request: bytes, _context: object) -> bytes:
        return str(len(request)).encode()

    server = WireServer([])
    add_echo(server, size)
    async with served(server) as address, dialled(address) as channel:
        call = echo(channel)
        for mebibytes in (5, 200):
            assert await call(b"x" * mebibytes * 2**20, timeout=60) == b"%d" % (mebibytes * 2**20)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"x" * (256 * 2**20 + 1), timeout=60)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_taken_port_is_named_with_its_flag() -> None:
    async with served(WireServer([])) as address:
        with pytest.raises(ListenError, match="--listen") as refused:
            await WireServer([]).start(address)
        assert address in str(refused.value)


async def test_listening_is_said_with_the_address(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with served(WireServer([])) as address:
            (record,) = (r for r in caplog.records if r.message == "listening")
    assert record.__dict__["addr"] == address


async def test_a_wrong_address_is_named() -> None:
    with pytest.raises(ListenError, match="'7780' is not an address"):
        await WireServer([]).start("7780")


async def test_plaintext_has_no_identity_and_mutual_tls_has_the_certificates_name(
    tmp_path: Path,
) -> None:
    async def who(_request: bytes, context: object) -> bytes:
        return repr(identity_of(context)).encode()  # type: ignore[arg-type]

    async def asked(files: TlsFiles | None, tls: ServerTls | None) -> bytes:
        server = WireServer([], tls)
        add_echo(server, who)
        async with served(server) as address, dialled(address, files) as channel:
            return await echo(channel)(b"", timeout=10)

    ca = trustme.CA()
    tls = ServerTls(write_files(tmp_path / "server", ca))
    client = write_files(tmp_path / "client", ca, ["bigfleet://cluster/c-1", "https://x"])
    assert await asked(None, None) == b"None"
    assert await asked(client, tls) == b"'bigfleet://cluster/c-1'"
    unknown = write_files(tmp_path / "unknown", ca)
    assert await asked(unknown, tls) == b"''"
    both = write_files(tmp_path / "both", ca, ["bigfleet://admin", "bigfleet://readonly"])
    assert await asked(both, tls) == b"''"


async def test_strangers_and_plaintext_clients_are_not_served(tmp_path: Path) -> None:
    ca = trustme.CA()
    tls = ServerTls(write_files(tmp_path / "server", ca))
    good = write_files(tmp_path / "good", ca)
    stranger = write_files(tmp_path / "stranger", trustme.CA())
    ca.cert_pem.write_to_path(stranger.ca)
    async with served(WireServer([], tls)) as address:
        assert await alive(address, good)
        assert not await alive(address, stranger)
        assert not await alive(address, None)


@pytest.mark.parametrize(
    "environment", [{}, {"GRPC_SSL_CIPHER_SUITES": "ECDHE-ECDSA-AES128-GCM-SHA256"}]
)
def test_tls_below_1_3_is_refused_by_a_process_of_ours(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    files = write_files(tmp_path, trustme.CA())
    # The floor has to be the process's own work, not inherited from this one.
    inherited = {k: v for k, v in os.environ.items() if k != "GRPC_SSL_CIPHER_SUITES"}
    with subprocess.Popen(
        [sys.executable, tls_server.__file__, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=inherited | environment,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        address = process.stdout.readline().strip()
        assert handshake(address, files, ssl.TLSVersion.TLSv1_3)
        assert not handshake(address, files, ssl.TLSVersion.TLSv1_2)
        process.stdin.close()


async def test_new_files_are_used_from_the_next_handshake_on(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    ends: dict[str, float] = {}
    tls = ServerTls(write_files(tmp_path / "server", old), ends.__setitem__)
    first = dict(ends)
    of_old, of_new = write_files(tmp_path / "old", old), write_files(tmp_path / "new", new)
    async with served(WireServer([], tls)) as address, dialled(address, of_old) as kept:
        assert await health(kept, "") == Status.SERVING
        assert not await alive(address, of_new)
        write_files(tmp_path / "server", new, hours=9)
        assert await alive(address, of_new)
        assert not await alive(address, of_old)
        # The connection that was open is not cut.
        assert await health(kept, "") == Status.SERVING
    leaf = x509.load_pem_x509_certificate((tmp_path / "server" / "cert.pem").read_bytes())
    assert ends["server"] == ends["client"] == leaf.not_valid_after_utc.timestamp()
    assert ends["server"] > first["server"]
    assert set(ends) == {"server", "client", "ca"}


async def test_without_a_handshake_new_files_are_seen_all_the_same_and_the_next_one_uses_them(
    tmp_path: Path,
) -> None:
    old, new = trustme.CA(), trustme.CA()
    seen = asyncio.Event()
    ends: dict[str, float] = {}

    def tell(role: str, end: float) -> None:
        if ends.get(role, end) != end:
            seen.set()
        ends[role] = end

    tls = ServerTls(write_files(tmp_path / "server", old), tell)
    async with served(WireServer([], tls, look_every=0.01)) as address:
        write_files(tmp_path / "server", new, hours=9)
        async with asyncio.timeout(20):
            await seen.wait()
        assert await alive(address, write_files(tmp_path / "new", new))
        assert not await alive(address, write_files(tmp_path / "old", old))


async def test_a_new_leaf_alone_is_used_as_well(tmp_path: Path) -> None:
    ca = trustme.CA()
    files = write_files(tmp_path / "server", ca)
    async with served(WireServer([], ServerTls(files))) as address:
        client = write_files(tmp_path / "client", ca)
        version = ssl.TLSVersion.TLSv1_3
        before = await asyncio.to_thread(handshake, address, client, version)
        write_files(tmp_path / "server", ca)
        after = await asyncio.to_thread(handshake, address, client, version)
    assert before
    assert after
    assert before != after


@pytest.mark.parametrize(
    "broken", ["cert", "key", "ca", "foreign key", "missing", "damaged", "unknown curve"]
)
async def test_broken_files_keep_the_last_good_set(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    ca = trustme.CA()
    files = write_files(tmp_path / "server", ca)
    tls = ServerTls(files)
    client = write_files(tmp_path / "client", ca)
    async with served(WireServer([], tls)) as address:
        match broken:
            case "foreign key":
                files.key.write_bytes(write_files(tmp_path / "other", ca).key.read_bytes())
            case "missing":
                files.ca.unlink()
            case "damaged":
                damage_certificate(files)
            case "unknown curve":
                write_unknown_key(files)
            case _:
                (tmp_path / "server" / f"{broken}.pem").write_text("half of a change")
        with caplog.at_level(logging.WARNING):
            assert await alive(address, client)
            assert await alive(address, client)
        words = [r.message for r in caplog.records if "TLS" in r.message]
        assert words == ["the last good TLS files stay in use"]
        write_files(tmp_path / "server", ca)
        assert tls.look()
        assert await alive(address, client)


def test_the_first_set_must_be_good(tmp_path: Path) -> None:
    files = write_files(tmp_path, trustme.CA())
    files.key.write_text("nothing")
    with pytest.raises(TlsFilesError, match="cannot be used"):
        ServerTls(files)


def test_some_of_three_flags_are_an_error_that_names_the_missing(tmp_path: Path) -> None:
    with pytest.raises(TlsFilesError, match="--tls-ca"):
        TlsFiles.of("cert", "key", None)
    assert TlsFiles.of(None, None, None) is None
