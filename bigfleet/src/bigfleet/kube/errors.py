"""What can go wrong between us and an API server.

KubeError
├── KubeConfigError          where the API server is, or who we are, cannot be read
├── DecodeError              an answer is not what Kubernetes sends
├── UnreachableError         no answer: not connected, cut off, or
│   └── DeadlineError          not in time; what a write did is unknown
└── ApiError                 the API server said no
    ├── ApiBadRequestError        400
    ├── UnauthorizedError      401: the token has expired or was never good
    ├── ForbiddenError         403: the role lacks a right
    ├── NotFoundError          404
    ├── AlreadyExistsError     409 on create
    ├── ConflictError          409: another client wrote first
    ├── GoneError              410: the resource version is too old; list again
    ├── InvalidError           422: a rule refuses the object
    ├── ThrottledError         429: later; retry_after says when, where the server said it
    └── ServerError            5xx
"""

from __future__ import annotations

from typing import Final

import msgspec


class KubeError(Exception):
    """Something between us and an API server went wrong."""


class KubeConfigError(KubeError):
    """The kubeconfig or the in-cluster files cannot be used."""


class DecodeError(KubeError):
    """An answer cannot be read."""


class UnreachableError(KubeError):
    """No answer, or a broken one. What a write did is unknown."""


class DeadlineError(UnreachableError):
    """No answer in time. What a write did is unknown."""


class Cause(msgspec.Struct, frozen=True, rename="camel"):
    """One reason of a refusal: which field, and what is wrong with it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """What an API server adds to a refusal."""

    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float = 0.0


class ApiStatus(msgspec.Struct, frozen=True, rename="camel"):
    """An API server's words for a refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class ApiError(KubeError):
    """The API server refused; `status` holds its words."""

    def __init__(self, status: ApiStatus, *, retry_after: float | None = None) -> None:
        super().__init__(status.message or f"{status.code} {status.reason}".strip())
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        """The HTTP status."""
        return self.status.code

    @property
    def reason(self) -> str:
        """Kubernetes' word for it, such as NotFound."""
        return self.status.reason

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The reasons one by one, where the server lists them."""
        return self.status.details.causes if self.status.details else ()


class ApiBadRequestError(ApiError):
    """The request makes no sense to the API server."""


class UnauthorizedError(ApiError):
    """The API server does not know who asks."""


class ForbiddenError(ApiError):
    """The role lacks a right; the message names it."""


class NotFoundError(ApiError):
    """There is no such object, or no such kind."""


class AlreadyExistsError(ApiError):
    """An object of that name is there already."""


class ConflictError(ApiError):
    """Another client wrote first, or owns the field."""


class GoneError(ApiError):
    """The resource version is too old: only a new list helps."""


class InvalidError(ApiError):
    """A rule refuses the object; the message says which."""


class ThrottledError(ApiError):
    """Too many requests, or an eviction that a budget does not allow now."""


class ServerError(ApiError):
    """The API server is in trouble."""


_BY_CODE: Final[dict[int, type[ApiError]]] = {
    400: ApiBadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: ThrottledError,
}


def api_error(code: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error for an answer that is not a success."""
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A proxy in between, or a panic: keep its words, but not a page of them.
        status = ApiStatus(message=body[:500].decode("utf-8", "replace").strip())
    return error_of(msgspec.structs.replace(status, code=code), retry_after=retry_after)


def error_of(status: ApiStatus, *, retry_after: float | None = None) -> ApiError:
    """The error for a Status, wherever it came from."""
    if retry_after is None and status.details and status.details.retry_after_seconds:
        retry_after = status.details.retry_after_seconds
    kind = _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)
    if status.reason == "AlreadyExists":
        kind = AlreadyExistsError
    elif status.reason == "Expired":
        kind = GoneError
    return kind(status, retry_after=retry_after)
