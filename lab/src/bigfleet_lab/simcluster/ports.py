"""What a simulated cluster needs from outside: time, and a stream to its shard.

Waiting is asyncio's, so a simulation brings its own event loop; chance is a `random.Random` that
is passed in.
"""

from __future__ import annotations

from typing import Protocol

from bigfleet.wire.session import SessionStream


class Clock(Protocol):
    """Two ways to tell the time; neither waits."""

    def now(self) -> int:
        """Unix nanoseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; the same count as the event loop's."""
        ...


class Dial(Protocol):
    """Opens streams. Nothing is sent before the first frame, so a dead shard shows itself there."""

    async def __call__(self, cluster_id: str) -> SessionStream:
        """A new stream for a cluster."""
        ...

    async def close(self) -> None:
        """No more streams."""
        ...
