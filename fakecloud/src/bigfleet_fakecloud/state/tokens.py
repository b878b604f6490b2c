"""Idempotency tokens: the second call with one gets the first call's object.

A token is bound to its request; with another request it is refused. It is forgotten after its
time, and a repeat is then a new request, as in a real cloud.
"""

from collections.abc import Callable

from bigfleet_fakecloud.errors import TokenReused
from bigfleet_fakecloud.state.timeline import Timeline


class Tokens:
    """What was made for which token."""

    def __init__(self, timeline: Timeline, expires: float) -> None:
        self._timeline = timeline
        self.expires = expires
        self._made: dict[tuple[str, str], tuple[float, object, str]] = {}

    def once(self, op: str, token: str | None, request: object, make: Callable[[], str]) -> str:
        """The id that was made for this token, or a new one. Without a token always a new one."""
        if not token:
            return make()
        now = self._timeline.now()
        known = self._made.get((op, token))
        if known is not None and now - known[0] < self.expires:
            if known[1] != request:
                raise TokenReused(f"token {token!r} was used with another request")
            return known[2]
        # Nothing is remembered of an attempt that was refused: it may succeed the next time.
        ref = make()
        self._made[op, token] = (now, request, ref)
        return ref
