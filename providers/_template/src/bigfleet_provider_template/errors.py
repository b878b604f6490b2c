"""How this cloud's errors become the kit's classes.

The class decides what happens next: Retryable is tried again, OutOfCapacity and QuotaExceeded fail
at once so that a shard takes another slot, Gone is success for a termination. Anything that is not
recognised here is Retryable, which is safe because every method may be repeated.
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


class CloudError(Exception):
    """What the SDK of a cloud raises: a status, a code, and how long to wait."""

    def __init__(self, status: int, code: str, text: str, after: float | None = None) -> None:
        super().__init__(f"{code}: {text}")
        self.status = status
        self.code = code
        self.after = after


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error; None for what this cloud never said."""
    if not isinstance(error, CloudError):
        return None
    text = str(error)
    if error.code == "out_of_stock":
        return OutOfCapacity(text)
    if error.code == "quota_exceeded":
        return QuotaExceeded(text)
    if error.status == 429:
        return Retryable(text, throttled=True, after=error.after)
    if error.status in (401, 403):
        return Unauthorized(text)
    if error.status == 404:
        return Gone(text)
    if error.status == 400:
        return InvalidRequest(text)
    return Retryable(text)
