"""How an API server's errors become the kit's classes.

An API server that is away or busy is waited for; one that says no to a right or to an object fails
the transition at once, with its own sentence, because waiting would not help.
"""

from bigfleet_providerkit import SubstrateError
from bigfleet_providerkit.calls.http_errors import classify_http

UNREACHABLE = 0


class ApiError(Exception):
    """What an API server said instead of yes; status 0 means that it was not reached."""

    def __init__(self, status: int, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.after = after


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error; None for what no API server says."""
    if not isinstance(error, ApiError):
        return None
    return classify_http(error.status, str(error), after=error.after)
