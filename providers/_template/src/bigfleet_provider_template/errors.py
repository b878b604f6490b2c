"""How this cloud's errors become the kit's classes.

The class decides what happens next: Retryable is tried again, OutOfCapacity and QuotaExceeded fail
at once so that a shard takes another slot, Gone is success for a termination. Anything that is not
recognised here is Retryable, which is safe because every method may be repeated.
"""

from bigfleet_providerkit import OutOfCapacity, QuotaExceeded, SubstrateError
from bigfleet_providerkit.calls.http_errors import classify_http

CODES = {"out_of_stock": OutOfCapacity, "quota_exceeded": QuotaExceeded}
"""What this cloud says by a code; the rest is what its HTTP status says everywhere."""


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
    return classify_http(error.status, str(error), code=error.code, codes=CODES, after=error.after)
