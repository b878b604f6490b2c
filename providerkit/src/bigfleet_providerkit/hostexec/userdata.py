"""User data of a new host: what the operator gave, the hook, and the host key.

User data works at the first boot only, so it carries nothing of a cluster. The default hook goes to
the place where the wrapper looks for it, unless the operator's image or user data brings another.
"""

import base64
import functools

from bigfleet_providerkit.hostexec.contract import script_text
from bigfleet_providerkit.hostexec.hostkey import HostKey

CLOUD_CONFIG = "#cloud-config\n"


def written_file(path: str, mode: str, text: str) -> list[str]:
    """One entry of cloud-init's write_files."""
    body = base64.b64encode(text.encode()).decode()
    return [
        f"  - path: {path}",
        f"    permissions: '{mode}'",
        "    encoding: b64",
        f"    content: {body}",
    ]


@functools.cache
def _hook_entry(hook: str) -> str:
    return "\n".join(written_file(hook, "0755", script_text("bootstrap.sh")))


def first_boot(base: str, hook: str, key: HostKey) -> str:
    """The user data of a host: base, default hook, host key."""
    lines = ["#cloud-config", "write_files:", _hook_entry(hook)]
    if key.private:
        lines += ["ssh_deletekeys: true", "ssh_keys:", "  ed25519_private: |"]
        lines += [f"    {line}" for line in key.private.strip().splitlines()]
        lines.append(f"  ed25519_public: {key.public}")
    ours = "\n".join(lines) + "\n"
    return multipart(base, ours) if base else ours


def multipart(*parts: str) -> str:
    """Several user-data documents in one, as cloud-init reads them; empty ones are left out."""
    boundary = "==BIGFLEET=="
    lines = [f'Content-Type: multipart/mixed; boundary="{boundary}"', "MIME-Version: 1.0", ""]
    for part in parts:
        if not part:
            continue
        kind = "cloud-config" if part.startswith(CLOUD_CONFIG) else "x-shellscript"
        lines += [f"--{boundary}", f'Content-Type: text/{kind}; charset="utf-8"', "", part.rstrip()]
    return "\n".join([*lines, f"--{boundary}--", ""])
