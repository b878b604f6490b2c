"""How the errors of the Hetzner Cloud API become the kit's classes.

The API names every refusal by a code; the HTTP status adds nothing to it. The SDK is not imported
here: its errors are recognised by what they carry.
"""

from bigfleet_providerkit import (
    Gone,
    InvalidRequest,
    OutOfCapacity,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)

OUT_OF_CAPACITY = frozenset(
    {"resource_unavailable", "placement_error", "no_space_left_in_location"}
)
READ_ONLY_CODES = ("forbidden", "token_readonly")
NOT_YET = frozenset({"conflict", "locked", "robot_unavailable", "maintenance"})
"""The object is busy: certainly nothing was done."""
NEVER = frozenset(
    {"invalid_input", "uniqueness_error", "json_error", "unsupported_error", "protected",
     "invalid_server_type", "server_type_deprecated", "deprecated_api_endpoint"}
)  # fmt: skip
BAD_TOKEN = "check HCLOUD_TOKEN: it is unknown, revoked, or of another project; "
READ_ONLY = "missing permission Read & Write: the API token may only read; make another one; "


class RateLimitedError(Exception):
    """The API refused a call (429). `after` is its Retry-After in seconds, where it sent one."""

    def __init__(self, url: str, after: float | None) -> None:
        super().__init__(f"rate_limit_exceeded: {url}")
        self.after = after


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error; None for what the API never said."""
    if isinstance(error, RateLimitedError):
        return Retryable(str(error), throttled=True, after=error.after)
    module, name = type(error).__module__, type(error).__name__
    if module.startswith("requests"):
        refused = name == "ConnectTimeout" or "NewConnectionError" in repr(error)
        return Retryable(f"{name}: {error}", refused=refused)
    if name == "APIException":
        return of_code(getattr(error, "code", ""), str(getattr(error, "message", error)))
    return None


def of_code(code: object, message: str) -> SubstrateError:
    """The class of a code, of a call or of an action that failed."""
    text = f"{code}: {message}"
    known = {
        "resource_limit_exceeded": QuotaExceeded(text),
        "not_found": Gone(text),
        "rate_limit_exceeded": Retryable(text, throttled=True),
        "unauthorized": Unauthorized(BAD_TOKEN + text),
        **dict.fromkeys(READ_ONLY_CODES, Unauthorized(READ_ONLY + text)),
        **dict.fromkeys(OUT_OF_CAPACITY, OutOfCapacity(text)),
        **dict.fromkeys(NOT_YET, Retryable(text, refused=True)),
        **dict.fromkeys(NEVER, InvalidRequest(text)),
    }
    return known.get(str(code), Retryable(text))
