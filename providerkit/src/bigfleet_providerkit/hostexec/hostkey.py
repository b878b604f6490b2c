"""Host keys that are known before the host exists.

For hosts reached by SSH an ed25519 key is minted at Create and given by cloud-init; its pin, the
base32 of the SHA-256 of the public key, is kept in a tag and checked on every connection. So the
first contact is as trustworthy as the tags.
"""

import base64
import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class HostKey:
    """A private key in OpenSSH form, its public line, and its pin; all empty without a key."""

    private: str = ""
    public: str = ""
    pin: str = ""


def pin_of(public_blob: bytes) -> str:
    """The pin of a public key in SSH wire form."""
    return base64.b32encode(hashlib.sha256(public_blob).digest()).decode().rstrip("=").lower()


def mint_host_key() -> HostKey:
    """A new host key."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    ).decode()
    public = (
        key.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )
    return HostKey(private, public, pin_of(base64.b64decode(public.split()[1])))
