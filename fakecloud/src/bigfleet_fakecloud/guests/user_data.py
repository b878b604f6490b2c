"""What a first boot takes from user data: files, the host key, or a shell script.

cloud-init's documents (plain or several in MIME) give files and a host key; a document that begins
with `#!` is a script. What a guest does not imitate (packages, users, runcmd) is left out.
"""

import base64
import email
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from bigfleet_fakecloud.errors import BadRequest

HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"


@dataclass(slots=True)
class FirstBoot:
    """Files by path with content and mode, and scripts in their order."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    scripts: list[str] = field(default_factory=list)


def read_user_data(data: bytes | str) -> FirstBoot:
    """Read user data as cloud-init would; text that it would not take is a BadRequest."""
    raw = data.encode() if isinstance(data, str) else data
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    boot = FirstBoot()
    text = raw.decode("utf-8", "replace")
    if text.startswith(("Content-Type: multipart", "MIME-Version:")):
        for part in email.message_from_string(text).walk():
            if not part.is_multipart():
                payload = part.get_payload(decode=True)
                _document(boot, payload.decode() if isinstance(payload, bytes) else "")
    else:
        _document(boot, text)
    return boot


def _document(boot: FirstBoot, text: str) -> None:
    if text.startswith("#!"):
        boot.scripts.append(text)
    elif text.startswith("#cloud-config"):
        try:
            config = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise BadRequest(f"the user data is not YAML: {error}") from error
        if isinstance(config, dict):
            _cloud_config(boot, config)
    elif text.strip():
        raise BadRequest(f"cloud-init would ignore user data that begins with {text[:20]!r}")


def _cloud_config(boot: FirstBoot, config: Mapping[str, object]) -> None:
    written = config.get("write_files")
    for entry in written if isinstance(written, list) else []:
        content = str(entry.get("content", ""))
        encoding = str(entry.get("encoding", ""))
        raw = content.encode()
        if encoding in ("b64", "base64", "gz+b64", "gzip+b64", "gz+base64"):
            raw = base64.b64decode(content)
        if encoding.startswith("gz"):
            raw = gzip.decompress(raw)
        mode = int(str(entry.get("permissions", "0644")), 8)
        boot.files[str(entry["path"])] = (raw, mode)
    keys = config.get("ssh_keys")
    if isinstance(keys, dict) and keys.get("ed25519_private"):
        boot.files[HOST_KEY] = (str(keys["ed25519_private"]).encode(), 0o600)
