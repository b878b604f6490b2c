"""Host keys that are known before the host exists.

For hosts reached by SSH an ed25519 key is minted at Create and given by cloud-init; its pin, the
base32 of the SHA-256 of the public key, is kept in a tag and checked on every connection. So the
first contact is as trustworthy as the tags.

A key is made from a seed that the store keeps with the Create, and its text is the same every time:
a Create that goes on after a restart sends the same user data, which clouds compare with the token.
"""

import base64
import hashlib
import secrets
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED_BYTES = 32
_KIND = b"ssh-ed25519"
_BLOCK = 8
_LINE = 70


@dataclass(frozen=True, slots=True)
class HostKey:
    """A private key in OpenSSH form, its public line, and its pin; all empty without a key."""

    private: str = ""
    public: str = ""
    pin: str = ""


def pin_of(public_blob: bytes) -> str:
    """The pin of a public key in SSH wire form."""
    return base64.b32encode(hashlib.sha256(public_blob).digest()).decode().rstrip("=").lower()


def new_seed() -> bytes:
    """The secret that a host key is made from."""
    return secrets.token_bytes(SEED_BYTES)


def mint_host_key(seed: bytes) -> HostKey:
    """The host key of a seed."""
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    blob = _field(_KIND) + _field(public)
    line = f"{_KIND.decode()} {base64.b64encode(blob).decode()}"
    return HostKey(_private_text(seed, public, blob), line, pin_of(blob))


def _field(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _private_text(seed: bytes, public: bytes, blob: bytes) -> str:
    """The key as OpenSSH writes it (PROTOCOL.key in its sources), without encryption.

    The library writes random check bytes, so that its text differs each time; here they come from
    the key.
    """
    check = hashlib.sha256(b"check" + public).digest()[:4]
    secret = check + check + blob + _field(seed + public) + _field(b"")
    secret += bytes(range(1, 1 + -len(secret) % _BLOCK))
    head = b"openssh-key-v1\0" + _field(b"none") + _field(b"none") + _field(b"")
    text = base64.b64encode(head + struct.pack(">I", 1) + _field(blob) + _field(secret)).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join(
        ["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""]
    )
