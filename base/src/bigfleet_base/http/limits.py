"""How much one HTTP server takes on, and how long it waits for its clients.

The defaults fit the pages and probes of a process: a few scrapers, a kubelet, a person with curl.
A server with long polls of many hosts gives its own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of one server. Times are in seconds."""

    connections: int = 256
    """Open at once; a new one takes the place of the one that has waited longest for a request."""
    backlog: int = 1024
    """Connections that the kernel keeps until they are accepted."""
    workers: int = 4
    """Pages that are made at the same time; further requests wait for a worker."""
    request: float = 10.0
    """From the connection, and its TLS handshake, to the last byte of the request."""
    handler: float = 60.0
    """For a handler that is a coroutine; afterwards it is cancelled and the client gets 503."""
    write: float = 30.0
    """For a client to take its response."""
    body_bytes: int = 1 << 20
    """The largest body of a request."""
