"""The errors of the engine, in one tree.

A `Problem` is an answer: what the imagined cloud says to its caller. The cloud's dialect turns it
into the status, code and body that the real one uses. A `ScriptError` is for the author of a page
or a test: something was asked that cannot be.

    FakeCloudError
      ScriptError
      Problem
        BadRequest  NotFound  Conflict  TokenReused
        OutOfStock  QuotaExceeded  Throttled
        Injected
"""


class FakeCloudError(Exception):
    """Everything this package raises."""


class ScriptError(FakeCloudError):
    """A page or a test asked for something that cannot be."""


class Problem(FakeCloudError):
    """An answer of the cloud that is not success."""

    status = 500
    code = "internal_error"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.retry_after: float | None = None


class BadRequest(Problem):
    """A request that the cloud's SDK would never send."""

    status = 400
    code = "bad_request"


class NotFound(Problem):
    """No such object, or not visible yet."""

    status = 404
    code = "not_found"


class Conflict(Problem):
    """The object is in a state in which this cannot be done."""

    status = 409
    code = "conflict"


class TokenReused(Problem):
    """An idempotency token came again with another request."""

    status = 409
    code = "token_reused"


class OutOfStock(Problem):
    """No capacity of that type in that zone."""

    status = 503
    code = "out_of_stock"


class QuotaExceeded(Problem):
    """The account may not have more."""

    status = 403
    code = "quota_exceeded"


class Throttled(Problem):
    """Too many calls; `retry_after` says when the next one will be taken."""

    status = 429
    code = "throttled"

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Injected(Problem):
    """A failure that a test ordered."""

    def __init__(self, status: int, code: str, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.retry_after = retry_after
