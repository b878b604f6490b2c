"""User data of a new host: what the operator gave, the hook, and the host key.

User data works at the first boot only, so it carries nothing of a cluster. The default hook goes to
the place where the wrapper looks for it, unless the operator's image or user data brings another.
"""

import base64
import functools
import shlex
from pathlib import PurePosixPath
from typing import Literal

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.hostexec.contract import script_text
from bigfleet_providerkit.hostexec.hostkey import HostKey

FirstBoot = Literal["cloud-init", "shell"]
HOST_KEY_FILE = "/etc/ssh/ssh_host_ed25519_key"
BASE_FILE = "/var/lib/bigfleet/first-boot"
CLOUD_CONFIG = "#cloud-config\n"
BOUNDARY = "==BIGFLEET=="
HEAD = f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"\nMIME-Version: 1.0\n\n'
# Without it cloud-init lets the write_files and runcmd of one document replace those of another.
MERGE = "list(append)+dict(recurse_list)+str()"


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


def first_boot(base: str, hook: str, key: HostKey, form: FirstBoot = "cloud-init") -> str:
    """The user data of a host: base, default hook, host key."""
    if form == "shell":
        return _first_boot_shell(base, hook, key)
    lines = ["#cloud-config", "write_files:", _hook_entry(hook)]
    if key.private:
        lines += ["ssh_deletekeys: true", "ssh_keys:", "  ed25519_private: |"]
        lines += [f"    {line}" for line in key.private.strip().splitlines()]
        lines.append(f"  ed25519_public: {key.public}")
    ours = "\n".join(lines) + "\n"
    # What comes later adds to the files of what came first, so a base may bring another hook.
    return multipart(ours, base) if base else ours


def _first_boot_shell(base: str, hook: str, key: HostKey) -> str:
    """The same for images without cloud-init: a script that the cloud runs as root at boot.

    It may run at every boot, so it leaves files alone that are there already with the same content.
    A base has to be a program here; it runs last.
    """
    if base and not base.startswith("#!"):
        raise OptionError(
            "user data of an image without cloud-init has to be a script that begins with #!; "
            "change --base-user-data or the offering's user_data"
        )
    lines = ["#!/bin/sh", "set -eu", "umask 077", "changed="]
    lines += _shell_file(hook, "755", script_text("bootstrap.sh"))
    if key.private:
        lines.append("changed=")
        lines += _shell_file(HOST_KEY_FILE, "600", key.private.strip() + "\n")
        lines += _shell_file(f"{HOST_KEY_FILE}.pub", "644", f"{key.public}\n")
        restart = "systemctl try-restart ssh.service sshd.service"
        lines.append(f'[ -z "$changed" ] || {restart} 2>/dev/null || true')
    if base:
        lines += _shell_file(BASE_FILE, "700", base)
        lines.append(shlex.quote(BASE_FILE))
    return "\n".join(lines) + "\n"


def _shell_file(path: str, mode: str, text: str) -> list[str]:
    """Lines that put a file in its place unless one with the same content is there."""
    body = base64.b64encode(text.encode()).decode()
    quoted, new = shlex.quote(path), shlex.quote(f"{path}.new")
    return [
        f"mkdir -p {shlex.quote(str(PurePosixPath(path).parent))}",
        f"printf %s {body} | base64 -d >{new}",
        f"chmod {mode} {new}",
        f"if cmp -s {new} {quoted}; then rm {new}; else mv {new} {quoted}; changed=1; fi",
    ]


def multipart(*parts: str) -> str:
    """Several user-data documents in one, as cloud-init reads them; empty ones are left out.

    A document that was made here already is taken apart again: cloud-init would run it as a script.
    """
    lines: list[str] = []
    for part in parts:
        if part.startswith(HEAD):
            lines += part.removeprefix(HEAD).rsplit(f"\n--{BOUNDARY}--", 1)[0].splitlines()
        elif part:
            lines += [f"--{BOUNDARY}", *_head_of(part), "", part.rstrip()]
    return HEAD + "\n".join([*lines, f"--{BOUNDARY}--", ""])


def _head_of(part: str) -> list[str]:
    if not part.startswith(CLOUD_CONFIG):
        return ['Content-Type: text/x-shellscript; charset="utf-8"']
    return ['Content-Type: text/cloud-config; charset="utf-8"', f"Merge-Type: {MERGE}"]
