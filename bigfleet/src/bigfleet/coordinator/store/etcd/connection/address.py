"""Where etcd is and how to get in, as the settings say it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bigfleet.coordinator.store.errors import StoreSettingsError
from bigfleet.wire.tls import TlsFiles

SCHEME: Final = "etcd://"
_PREFIX: Final = "bigfleet"
_ENDPOINT: Final = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    """The members, the part of the key space that is ours, and what a log-in needs."""

    endpoints: tuple[str, ...]
    prefix: bytes
    tls: TlsFiles | None = None
    username: str = ""
    password_file: Path | None = None

    @classmethod
    def of(
        cls,
        text: str,
        tls: TlsFiles | None = None,
        username: str = "",
        password_file: Path | None = None,
    ) -> EtcdAddress:
        """The address of `etcd://host:2379,host:2379[/prefix]`."""
        hosts, _, prefix = text.removeprefix(SCHEME).partition("/")
        endpoints = tuple(dict.fromkeys(part for part in hosts.split(",") if part))
        wrong = [endpoint for endpoint in endpoints if not _ENDPOINT.fullmatch(endpoint)]
        if not text.startswith(SCHEME) or not endpoints or wrong:
            raise StoreSettingsError(
                f"--store {text!r}: {wrong[0] if wrong else 'no member'} is not host:port; write "
                "etcd://host:2379,host:2379[/prefix], without credentials"
            )
        if bool(username) != (password_file is not None):
            raise StoreSettingsError("etcd needs both a user name and a password file, or neither")
        path = prefix.strip("/") or _PREFIX
        return cls(endpoints, f"/{path}/".encode(), tls, username, password_file)
