"""Keys and certificates of a control plane on loopback: one authority, one server, one
administrator.

Good for a day, made again for every control plane, never used outside of tests.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE: Final = dt.timedelta(days=2)
SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
SERVER_ADDRESSES: Final = ("127.0.0.1", "10.96.0.1")


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates that a control plane trusts."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> bytes:
        """What clients and servers have to trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def signer(self) -> Identity:
        """Its own certificate and key, for a controller that signs in its name."""
        return Identity(self.certificate, private_pem(self._key))

    def server(self) -> Identity:
        """An identity for servers on loopback."""
        names = [x509.DNSName(name) for name in SERVER_NAMES]
        addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in SERVER_ADDRESSES]
        return self._issue(
            "kube-apiserver",
            None,
            ExtendedKeyUsageOID.SERVER_AUTH,
            x509.SubjectAlternativeName([*names, *addresses]),
        )

    def user(self, name: str, group: str | None = None) -> Identity:
        """An identity by which the API server knows a user and a group."""
        return self._issue(name, group, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        name: str,
        group: str | None,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if group:
            parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        builder = self._builder(x509.Name(parts), key).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Identity(signed.public_bytes(serialization.Encoding.PEM), private_pem(key))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + LIFE)
        )


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key as a server reads it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def signing_key(private: Path, public: Path) -> None:
    """A pair of keys with which service account tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    private.write_bytes(private_pem(key))
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
