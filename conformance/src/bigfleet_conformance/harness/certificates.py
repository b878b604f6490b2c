"""Certificates for the identity behaviours: an authority that mints leaves with given SANs.

Used by the secure lane, which plays every kind of client, and for TLS targets, where every shard id
needs a certificate of its own. Keys stay in memory or in the run's own folder.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = dt.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one side of a TLS connection has, as PEM."""

    ca: bytes
    certificate: bytes
    key: bytes


def shard_san(shard: str) -> str:
    """The identity of a shard."""
    return f"bigfleet://shard/{shard}"


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """A certificate authority, made here or given with its key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def make(cls, name: str) -> "Authority":
        """A new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), _name(name), key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> "Authority":
        """An authority from its PEM files; ValueError when they are not usable."""
        loaded = serialization.load_pem_private_key(key, password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the CA's key has to be an elliptic-curve key")
        return cls(x509.load_pem_x509_certificate(certificate), loaded)

    @property
    def pem(self) -> bytes:
        """The certificate that the others trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key with which leaves are signed."""
        return _pem(self._key)

    def leaf(self, uris: Sequence[str] = (), *, hosts: Sequence[str] = ()) -> Credentials:
        """A leaf with these URI SANs, and host names or addresses for a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        builder = _builder(_name("leaf"), self._certificate.subject, key.public_key())
        builder = builder.add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        leaf = builder.sign(self._key, hashes.SHA256())
        return Credentials(
            ca=self.pem,
            certificate=leaf.public_bytes(serialization.Encoding.PEM),
            key=_pem(key),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
    )
