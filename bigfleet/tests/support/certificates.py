"""Certificates for tests of mTLS: one CA, leaves with any URI names, files on disk."""

from __future__ import annotations

import base64
import contextlib
import errno
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bigfleet.wire.tls import TlsFiles

_P_256 = bytes.fromhex("2a8648ce3d030107")
"""The name of the usual curve, as keys write it."""


def write_files(
    folder: Path, ca: trustme.CA, uris: Sequence[str] = (), *, hours: float = 1.0
) -> TlsFiles:
    """Certificate, key and bundle of a process with these names, valid on this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = serialization.load_pem_private_key(ca.private_key_pem.bytes(), password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ip_address("127.0.0.1")),
    ]
    names += [x509.UniformResourceIdentifier(uri) for uri in uris]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.load_pem_x509_certificate(ca.cert_pem.bytes()).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=hours))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
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
def no_file_handles() -> Iterator[None]:
    """Nothing can be read for a while, which no file is to blame for."""

    def fails(_path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        yield


def damage_certificate(files: TlsFiles) -> None:
    """A certificate that can be read, but for its public key."""
    certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
    key = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    whole = bytearray(certificate.public_bytes(serialization.Encoding.DER))
    whole[whole.index(key) + len(key) - 1] ^= 0xFF
    text = base64.encodebytes(bytes(whole)).decode()
    files.cert.write_text(f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n")


def write_unknown_key(files: TlsFiles) -> None:
    """A key on a curve no one here knows."""
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    whole = bytearray(
        key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    whole[whole.index(_P_256) + len(_P_256) - 1] ^= 0x7F
    text = base64.encodebytes(bytes(whole)).decode()
    files.key.write_text(f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n")
