"""etcd's complaints as the errors of a store, each with its remedy; and which may pass.

    StoreUnavailableError
    ├── CompactedError    the revision asked for is compacted
    └── LeaseGoneError    the lease has run out or was revoked

Both are for inside this package: the first means to list again, the second that the leadership is
over.
"""

from __future__ import annotations

from typing import Final

import grpc
import grpc.aio

from bigfleet.coordinator.store.errors import (
    StoreError,
    StoreFullError,
    StoreSettingsError,
    StoreUnavailableError,
)

_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
_FULL: Final = (
    "etcd has no space left: {}. Nothing was written. Compact and defragment it, raise "
    "--quota-backend-bytes, then `etcdctl alarm disarm`"
)
_TOO_LARGE: Final = "etcd refuses the size of a write: {}. Raise its --max-request-bytes to 1.5 MiB"
_LOGIN: Final = "etcd refused the login: {}. Check the user name and the password file of the store"
_NO_LOGIN: Final = "etcd wants a log-in: {}. Give the store a user name and a password file"
_RIGHTS: Final = "etcd: {}. Grant the store's user readwrite on its prefix"


class CompactedError(StoreUnavailableError):
    """The revision asked for is compacted."""


class LeaseGoneError(StoreUnavailableError):
    """There is no such lease any more."""


def may_pass(error: grpc.aio.AioRpcError) -> bool:
    """Whether another member, or the same one later, may answer."""
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return "too many requests" in _words(error)
    return error.code() in _PASSING


def wants_new_token(error: grpc.aio.AioRpcError) -> bool:
    """Whether logging in again may help."""
    return (
        error.code() is grpc.StatusCode.UNAUTHENTICATED
        or "auth store is old" in _words(error)
        or "invalid auth token" in _words(error)
    )


def fault_of(error: grpc.aio.AioRpcError) -> StoreError:
    """The error of a store that says what etcd said, and what to do."""
    words = _words(error)
    for part, kind, text in _KNOWN:
        if part in words:
            return kind(text.format(words))
    if error.code() is grpc.StatusCode.PERMISSION_DENIED:
        return StoreSettingsError(_RIGHTS.format(words))
    if error.code() is grpc.StatusCode.UNAUTHENTICATED:
        return StoreSettingsError(_LOGIN.format(words))
    return StoreUnavailableError(f"etcd: {error.code().name}: {words}")


def error_words(error: grpc.aio.AioRpcError) -> str:
    """What a member said, for a message about several of them."""
    return f"{error.code().name}: {_words(error)}"


def _words(error: grpc.aio.AioRpcError) -> str:
    return (error.details() or "no details").removeprefix("etcdserver: ")


_KNOWN: Final[tuple[tuple[str, type[StoreError], str], ...]] = (
    ("database space exceeded", StoreFullError, _FULL),
    ("no space", StoreFullError, _FULL),
    ("request is too large", StoreFullError, _TOO_LARGE),
    ("revision has been compacted", CompactedError, "etcd: {}"),
    ("lease not found", LeaseGoneError, "etcd: {}"),
    ("authentication failed", StoreSettingsError, _LOGIN),
    ("authentication is not enabled", StoreSettingsError, _LOGIN),
    ("user name is empty", StoreSettingsError, _NO_LOGIN),
)
