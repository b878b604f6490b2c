"""The one name in a certificate, whatever else stands in it."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID

from bigfleet.wire.identity import NO_NAME, name_in


def certificate(names: bytes) -> bytes:
    """A certificate whose alternative names are these bytes."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names), False
        )
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def named(*parts: bytes) -> bytes:
    """Alternative names in the bytes of a certificate."""
    return b"\x30" + bytes([sum(map(len, parts))]) + b"".join(parts)


def uri(text: str) -> bytes:
    return b"\x86" + bytes([len(text)]) + text.encode()


def test_the_single_name_of_ours_is_who_it_is() -> None:
    assert name_in(certificate(named(uri("https://x"), uri("bigfleet://admin")))) == (
        "bigfleet://admin"
    )


@pytest.mark.parametrize(
    "names",
    [
        named(uri("bigfleet://admin"), uri("bigfleet://readonly")),
        named(uri("https://x")),
        named(b"\xa3\x00", uri("bigfleet://admin")),
        named(b"\x86\x01\xff"),
        b"junk",
    ],
    ids=["two", "none of ours", "a name of a kind no person reads", "no text", "no names"],
)
def test_anything_else_has_no_identity(names: bytes) -> None:
    assert name_in(certificate(names)) == NO_NAME
