"""mTLS against the executable, which is a process of its own: identity, floor, new files."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bigfleet.provider import GrpcTransport, ProviderClient, ProviderError, ProviderSite
from bigfleet.wire.fencing import FencingStamps
from bigfleet.wire.tls import LOOK_EVERY_SECONDS, TlsFiles
from bigfleet_providerkit.testing import ProviderProcess

# The floor of TLS has to be the process's own work, not inherited from this one.
FAKE = ["env", "-u", "GRPC_SSL_CIPHER_SUITES"]
FAKE += ProviderProcess.module("bigfleet_lab.fake.main")
MACHINE = "fake/OnDemand/fake-standard-4/fake-zone-a/000"


def install_server(folder: Path, ca: trustme.CA) -> list[str]:
    """The provider's three files, and the options that name them."""
    folder.mkdir(exist_ok=True)
    leaf = ca.issue_cert("127.0.0.1", "localhost")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    return [f"--tls-{name}={folder / f'{name}.pem'}" for name in ("cert", "key", "ca")]


def install_client(folder: Path, ca: trustme.CA, uri: str) -> TlsFiles:
    """A shard's three files, with its identity as URI name (trustme knows no URIs)."""
    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = serialization.load_pem_private_key(ca.private_key_pem.bytes(), password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.load_pem_x509_certificate(ca.cert_pem.bytes()).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(names, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    files = TlsFiles(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    files.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    ca.cert_pem.write_to_path(files.ca)
    return files


@contextlib.contextmanager
def provider(tmp_path: Path, ca: trustme.CA) -> Iterator[ProviderProcess]:
    options = install_server(tmp_path / "server", ca)
    with ProviderProcess(FAKE, "--seed-count=6", *options).wait_open() as process:
        yield process


def served_with(process: ProviderProcess, folder: Path, version: ssl.TLSVersion) -> bool:
    """Whether a client with a good certificate gets through the handshake in this version."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", process.port), timeout=5) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                return bool(secure.recv(1))
        except (ssl.SSLError, OSError):
            return False


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_only_the_shard_of_the_certificate_may_mutate(tmp_path: Path) -> None:
    ca = trustme.CA()
    with provider(tmp_path, ca) as process:
        site = ProviderSite("fake", process.address)
        files = install_client(tmp_path / "client", ca, "bigfleet://shard/shard-a")
        own = ProviderClient.dial(site, FencingStamps("shard-a", 1), files)
        other = ProviderClient.dial(site, FencingStamps("shard-b", 1), files)
        await own.create(MACHINE)
        with pytest.raises(ProviderError) as refused:
            await other.create(MACHINE)
        assert refused.value.code.name == "PERMISSION_DENIED"
        assert len((await other.list()).machines) == 6
        await own.close()
        await other.close()


async def test_strangers_plaintext_and_old_protocols_are_not_served(tmp_path: Path) -> None:
    ca = trustme.CA()
    with provider(tmp_path, ca) as process:
        site, stamps = ProviderSite("fake", process.address), FencingStamps("shard-a", 1)
        stranger = install_client(tmp_path / "client", trustme.CA(), "bigfleet://shard/shard-a")
        for files in (stranger, None):
            client = ProviderClient.dial(site, stamps, files)
            with pytest.raises(ProviderError) as refused:
                await client.list(seconds=5)
            assert refused.value.code.name == "UNAVAILABLE"
            await client.close()
        assert served_with(process, tmp_path / "server", ssl.TLSVersion.TLSv1_3)
        assert not served_with(process, tmp_path / "server", ssl.TLSVersion.TLSv1_2)


async def test_new_files_are_used_without_a_restart_of_either_side(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    with provider(tmp_path, old) as process:
        files = install_client(tmp_path / "client", old, "bigfleet://shard/shard-a")
        time = Time()
        transport = GrpcTransport(process.address, files, now=time)
        site = ProviderSite("fake", process.address)
        client = ProviderClient(site, FencingStamps("shard-a", 1), transport)
        await client.list()
        install_server(tmp_path / "server", new)
        await client.list()
        files.key.write_text("half of a change")
        time.seconds += LOOK_EVERY_SECONDS
        await client.list()
        install_client(tmp_path / "client", new, "bigfleet://shard/shard-c")
        time.seconds += LOOK_EVERY_SECONDS
        with pytest.raises(ProviderError) as refused:
            await client.create(MACHINE)
        assert refused.value.code.name == "PERMISSION_DENIED"
        await client.close()


async def test_a_provider_registered_while_the_files_are_broken_is_reached_when_they_are_repaired(
    tmp_path: Path,
) -> None:
    ca = trustme.CA()
    with provider(tmp_path, ca) as process:
        files = install_client(tmp_path / "client", ca, "bigfleet://shard/shard-a")
        good = files.key.read_bytes()
        files.key.write_text("half of a change")
        site = ProviderSite("fake", process.address)
        client = ProviderClient.dial(site, FencingStamps("shard-a", 1), files)
        with pytest.raises(ProviderError, match="TLS files cannot be used") as refused:
            await client.list()
        assert refused.value.code.name == "UNAVAILABLE"
        files.key.write_bytes(good)
        assert len((await client.list()).machines) == 6
        await client.close()
