"""mTLS: who may do what, the floor of the protocol, files that change on disk."""

import contextlib
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest
import structlog
import trustme
from cryptography import x509
from structlog.testing import capture_logs

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import State
from bigfleet_providerkit.service.identity import peer_of
from bigfleet_providerkit.testing import CHANNEL_OPTIONS, ProviderProcess, Remote, Shard
from bigfleet_providerkit.tls.files import TlsFiles

Call = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
GOOD_STAY = "the last good ones stay"
TEMPLATE = ProviderProcess.module("bigfleet_provider_template")


class Authority:
    """A CA, its server files, and clients with any name."""

    def __init__(self, folder: Path, ca: trustme.CA | None = None) -> None:
        self.folder = folder
        self.ca = ca or trustme.CA()
        self.install()

    def install(self) -> None:
        leaf = self.ca.issue_cert("127.0.0.1", "localhost")
        self.ca.cert_pem.write_to_path(self.folder / "ca.pem")
        leaf.private_key_pem.write_to_path(self.folder / "key.pem")
        leaf.cert_chain_pems[0].write_to_path(self.folder / "cert.pem")

    @property
    def options(self) -> list[str]:
        return [f"--tls-{name}={self.folder / f'{name}.pem'}" for name in ("cert", "key", "ca")]

    def channel(self, address: str, *names: str, ca: trustme.CA | None = None) -> grpc.aio.Channel:
        issuer = ca or self.ca
        client = issuer.issue_cert("client.test", *names)
        credentials = grpc.ssl_channel_credentials(
            self.ca.cert_pem.bytes(), client.private_key_pem.bytes(),
            client.cert_chain_pems[0].bytes(),
        )  # fmt: skip
        return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)


def named(authority: Authority, *uris: str, unread: bytes = b"") -> bytes:
    """A client certificate with these URI names, as PEM (trustme knows no URIs).

    `unread` is a name more, in the bytes of a certificate.
    """
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = serialization.load_pem_private_key(
        authority.ca.private_key_pem.bytes(), password=None
    )
    issuer = x509.load_pem_x509_certificate(authority.ca.cert_pem.bytes())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
    if uris:
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(u) for u in uris])
        whole = names.public_bytes()[2:] + unread
        builder = builder.add_extension(
            x509.UnrecognizedExtension(names.oid, b"\x30" + bytes([len(whole)]) + whole), False
        )
    certificate = builder.sign(issuer_key, hashes.SHA256())  # type: ignore[arg-type]
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private


def with_password(leaf: trustme.LeafCert) -> bytes:
    """Its key, readable with a password only."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def channel_as(authority: Authority, address: str, *uris: str) -> grpc.aio.Channel:
    pem = named(authority, *uris)
    cert, _, key = pem.partition(b"-----END CERTIFICATE-----\n")
    credentials = grpc.ssl_channel_credentials(
        authority.ca.cert_pem.bytes(), key, cert + b"-----END CERTIFICATE-----\n"
    )
    return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)


@contextlib.asynccontextmanager
async def a_provider(tmp_path: Path) -> AsyncIterator[tuple[ProviderProcess, Authority]]:
    authority = Authority(tmp_path)
    process = ProviderProcess(
        TEMPLATE, "--use-fake-backend", *authority.options, log=tmp_path / "log"
    )
    with process.wait_open() as provider:
        yield provider, authority
        assert provider.stop() == 0


async def code_of(call: object) -> grpc.StatusCode:
    try:
        await call  # type: ignore[misc]
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_only_the_shard_named_in_the_request_may_mutate(tmp_path: Path) -> None:
    async with a_provider(tmp_path) as (provider, authority):
        tables = {
            ("bigfleet://shard/shard-a",): ("OK", "OK"),
            ("bigfleet://shard/shard-b",): ("PERMISSION_DENIED", "OK"),
            ("bigfleet://cluster/c",): ("PERMISSION_DENIED", "PERMISSION_DENIED"),
            ("bigfleet://readonly",): ("PERMISSION_DENIED", "OK"),
            ("bigfleet://admin",): ("PERMISSION_DENIED", "OK"),
            (): ("PERMISSION_DENIED", "PERMISSION_DENIED"),
            ("bigfleet://shard/shard-a", "bigfleet://shard/x"): (
                "PERMISSION_DENIED", "PERMISSION_DENIED",
            ),
        }  # fmt: skip
        machine = "example/OnDemand/example-standard-4/example-zone-a/000"
        for uris, (mutation, read) in reversed(tables.items()):
            async with channel_as(authority, provider.address, *uris) as channel:
                shard = Shard(Remote(channel))
                assert (await code_of(shard.create(machine))).name == mutation, uris
                assert (await code_of(shard.get(machine))).name == read, uris
        async with channel_as(authority, provider.address, "bigfleet://shard/") as channel:
            zero = Remote(channel).create(pb.CreateRequest(machine_id=machine))
            assert await code_of(zero) is grpc.StatusCode.PERMISSION_DENIED


async def test_strangers_are_refused_in_the_handshake(tmp_path: Path) -> None:
    async with a_provider(tmp_path) as (provider, authority):
        async with grpc.aio.insecure_channel(provider.address) as plain:
            call: Call = plain.unary_unary("/bigfleet.v1alpha1.CapacityProvider/List")
            assert await code_of(call(b"", timeout=3)) is grpc.StatusCode.UNAVAILABLE
        async with authority.channel(provider.address, ca=trustme.CA()) as foreign:
            call = foreign.unary_unary("/bigfleet.v1alpha1.CapacityProvider/List")
            assert await code_of(call(b"", timeout=3)) is grpc.StatusCode.UNAVAILABLE
        with pytest.raises((ssl.SSLError, OSError)):
            handshake(provider.port, tmp_path, ssl.TLSVersion.TLSv1_2)


def handshake(port: int, folder: Path, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.recv(1)


async def test_new_files_are_used_without_a_restart_and_broken_ones_are_not(tmp_path: Path) -> None:
    async with a_provider(tmp_path) as (provider, old):
        open_channel = channel_as(old, provider.address, "bigfleet://shard/shard-a")
        before = Shard(Remote(open_channel))
        machine = (await before.machines())[0].id
        new = Authority(tmp_path, trustme.CA())
        async with channel_as(new, provider.address, "bigfleet://shard/shard-a") as channel:
            await Shard(Remote(channel), epoch=2).create(machine)
        (tmp_path / "key.pem").write_bytes(with_password(new.ca.issue_cert("127.0.0.1")))
        async with channel_as(new, provider.address, "bigfleet://readonly") as channel:
            assert await Shard(Remote(channel)).state(machine) is State.IDLE
        (tmp_path / "cert.pem").write_text("broken")
        async with channel_as(new, provider.address, "bigfleet://shard/shard-a") as channel:
            assert await Shard(Remote(channel)).state(machine) is State.IDLE
        (tmp_path / "ca.pem").unlink()
        async with channel_as(new, provider.address, "bigfleet://readonly") as channel:
            assert await Shard(Remote(channel)).state(machine) is State.IDLE
        await before.machines()
        await open_channel.close()
    lines_told = [line for line in (tmp_path / "log").read_text().splitlines() if GOOD_STAY in line]
    assert len(lines_told) == 3
    assert "assword" in lines_told[0]


def test_a_certificate_needs_exactly_one_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert (
        peer_of(named(authority, "bigfleet://shard/a", "spiffe://x")).name == "bigfleet://shard/a"
    )
    assert peer_of(named(authority, "bigfleet://a", "bigfleet://b")).name == ""
    assert peer_of(named(authority)).name == ""
    assert peer_of(b"junk").name == ""
    assert peer_of(named(authority, "bigfleet://shard/a", unread=b"\xa3\x00")).name == ""


def test_the_floor_is_set_by_importing_the_kit_whatever_the_environment_says() -> None:
    code = "import bigfleet_providerkit, os; print(os.environ['GRPC_SSL_CIPHER_SUITES'])"
    environment = os.environ | {"GRPC_SSL_CIPHER_SUITES": "ECDHE-ECDSA-AES128-GCM-SHA256"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "PSK-AES128-CBC-SHA"


def test_new_files_that_could_not_be_read_once_are_read_when_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_path: Path) -> bytes:
        raise OSError("Too many open files")

    handshakes: list[Callable[[], object]] = []
    monkeypatch.setattr(
        grpc, "dynamic_ssl_server_credentials", lambda _first, fetch, **_: handshakes.append(fetch)
    )
    authority = Authority(tmp_path)
    cert, key, ca = (str(tmp_path / f"{name}.pem") for name in ("cert", "key", "ca"))
    with capture_logs() as logged:
        TlsFiles(cert, key, ca, structlog.get_logger()).server_credentials()
        (handshake,) = handshakes
        authority.install()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", fails)
            assert [handshake(), handshake()] == [None, None]
        assert handshake() is not None
        assert handshake() is None
    assert [line["log_level"] for line in logged] == ["warning", "info"]
