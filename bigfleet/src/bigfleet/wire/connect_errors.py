"""Why there is no connection, in our words: gRPC tells it in those of its C library."""

from __future__ import annotations

import re
from typing import Final

_TRANSPORT: Final = re.compile(
    r"failed to connect|connection|socket|dns|resol|ipv[46]:|handshake|goaway|unreachable",
    re.IGNORECASE,
)
_CAUSES: Final = (
    (r"connection refused", "no process listens there"),
    (r"name or service not known|domain name|dns|resol", "the name cannot be resolved"),
    (r"ssl|handshake|certificate|tls", "the TLS handshake failed: check --tls-ca and its names"),
    (r"no route|unreachable", "there is no way to that host"),
    (r"socket closed|reset|endpoint closing", "it closed the connection"),
)
_BARE: Final = {
    "CANCELLED": "the call was cancelled",
    "DEADLINE_EXCEEDED": "no answer in time",
    "PERMISSION_DENIED": "it refuses",
    "UNIMPLEMENTED": "it cannot do this",
    "UNAVAILABLE": "no connection",
}


def of_transport(detail: str) -> bool:
    """Whether the detail of UNAVAILABLE is the library's own, and not what a peer says."""
    return not detail or _TRANSPORT.search(detail) is not None


def cause(detail: str) -> str:
    """Why there is no connection, without the library's words where possible."""
    last = detail.rpartition("last error: ")[2] or "no connection"
    for pattern, words in _CAUSES:
        if re.search(pattern, last, re.IGNORECASE):
            return words
    return last


def shortly(code: str, detail: str) -> str:
    """A failed call in a few words."""
    text = " ".join(detail.split())
    if code == "UNAVAILABLE" and of_transport(text):
        return cause(text)
    return text or _BARE.get(code, code)
