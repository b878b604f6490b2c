"""Listening sockets at `host:port`, `[v6]:port`, or `:port` for every interface."""

from __future__ import annotations

import socket

from bigfleet_base.addresses import AddressError, Endpoint, bind_endpoint


class HttpError(OSError):
    """The pages cannot be served at this address."""


def listen(address: str, flag: str, backlog: int) -> socket.socket:
    """A listening socket that does not block; an HttpError names the flag to change."""
    try:
        wanted = Endpoint.parse(address, f"{flag} host:port, :port, or 0 for none")
        where = bind_endpoint(wanted)
        is_v6 = ":" in where.host
        listener = socket.create_server(
            (where.host, where.port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            backlog=backlog,
            dualstack_ipv6=is_v6 and where.is_wildcard,
        )
    except AddressError as error:
        raise HttpError(str(error)) from error
    except OSError as error:
        raise HttpError(
            f"cannot listen on {address}: {error.strerror or error}; choose another {flag}, "
            "or 0 for none"
        ) from error
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    """The address of the socket itself, as a client writes it."""
    return str(Endpoint.of_socket(listener.getsockname()))
