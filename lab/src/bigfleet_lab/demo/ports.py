"""Whether the demo's addresses can be had, asked before anything starts.

A process that finds its port taken says so in a log that is not read yet; here it is a line with
the port and the flag that changes it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from bigfleet.cli.errors import FailureError, InputError


def split(flag: str, address: str) -> tuple[str, int]:
    """Host and port of an address."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(
            f"{flag} {address!r} is not an address: write host:port, as 127.0.0.1:8700"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def refuse_taken(addresses: Mapping[str, str]) -> None:
    """Raise for the first address that another party has, by flag; and for one given twice."""
    seen: dict[tuple[str, int], str] = {}
    for flag, address in addresses.items():
        host, port = split(flag, address)
        if (host, port) in seen:
            raise InputError(f"{flag} and {seen[host, port]} are both {address}: change one")
        seen[host, port] = flag
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                # Binding alone does not notice a listener that allows sharing.
                probe.listen(1)
            except OSError as error:
                raise FailureError(
                    f"port {port} of {host} cannot be used ({error.strerror}): stop what has it, "
                    f"or choose another with {flag} {host}:PORT"
                ) from None
