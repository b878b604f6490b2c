"""The codes by which a cloud names its refusals, and the class of each.

A provider lists the codes it knows once; everything else follows from the HTTP status: a 4xx proves
that nothing was done, and any other answer proves nothing.
"""

from bigfleet_providerkit.errors import (
    Gone,
    InvalidRequest,
    OutOfCapacity,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)


class ErrorCodes:
    """Codes by class, each list one text of words. `not_yet` are refusals that pass by themselves;
    `never` are those that stay, given by how the codes begin."""

    def __init__(
        self,
        *,
        throttled: str = "",
        out_of_capacity: str = "",
        quota: str = "",
        unauthorized: str = "",
        gone: str = "",
        not_yet: str = "",
        never: str = "",
    ) -> None:
        self._throttled = frozenset(throttled.split())
        self._not_yet = frozenset(not_yet.split())
        self._never = tuple(never.split())
        self._classes: dict[str, type[SubstrateError]] = {
            **dict.fromkeys(out_of_capacity.split(), OutOfCapacity),
            **dict.fromkeys(quota.split(), QuotaExceeded),
            **dict.fromkeys(unauthorized.split(), Unauthorized),
            **dict.fromkeys(gone.split(), Gone),
        }

    def error(
        self, code: str, text: str, *, status: int = 0, after: float | None = None
    ) -> SubstrateError:
        """The error for a code. `status` is 0 where the answer had none; `after` is the pause that
        the cloud asked for."""
        if code in self._throttled:
            return Retryable(text, throttled=True, after=after)
        if code in self._classes:
            return self._classes[code](text)
        if code in self._not_yet:
            return Retryable(text, refused=True)
        if code.startswith(self._never):
            return InvalidRequest(text)
        return Retryable(text, refused=400 <= status < 500)
