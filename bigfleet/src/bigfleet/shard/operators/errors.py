"""What can go wrong with a session.

    SessionEnd              a stream ends with a status other than OK
    AskingError             an operator was asked and there is no answer
    ├── NoSessionError      the cluster has no session, or lost it meanwhile
    └── BlobError           the cluster says it cannot render the node's data

An answer that does not come in time is a TimeoutError.
"""

from __future__ import annotations

import grpc


class SessionEnd(Exception):  # noqa: N818 - it is how a session ends, not always a fault
    """A stream ends with this status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code
        self.text = text


class AskingError(Exception):
    """An operator was asked something and will not answer."""


class NoSessionError(AskingError):
    """The cluster has no session, or its session ended before the answer."""


class BlobError(AskingError):
    """The cluster cannot render the data a node starts with."""
