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


def with_host_key(user_data: str, key: HostKey) -> str:
    """cloud-init user data that installs the key, beside what was there."""
    indented = "".join(f"    {line}\n" for line in key.private.strip().splitlines())
    block = f"ssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n{indented}"
    block += f"  ed25519_public: {key.public}\n"
    if user_data.startswith("#cloud-config"):
        return user_data.rstrip() + "\n" + block
    if not user_data:
        return "#cloud-config\n" + block
    return multipart(user_data, "#cloud-config\n" + block)


def multipart(*parts: str) -> str:
    """Several user-data documents in one, as cloud-init reads them."""
    boundary = "==BIGFLEET=="
    lines = [f'Content-Type: multipart/mixed; boundary="{boundary}"', "MIME-Version: 1.0", ""]
    for part in parts:
        kind = "cloud-config" if part.startswith("#cloud-config") else "x-shellscript"
        lines += [f"--{boundary}", f'Content-Type: text/{kind}; charset="utf-8"', "", part.rstrip()]
    return "\n".join([*lines, f"--{boundary}--", ""])
