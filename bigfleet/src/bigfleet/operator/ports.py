"""What the operator needs from outside: time, and a line to its shard.

Waiting is asyncio's, so a simulation brings its own event loop; chance is a `random.Random` that
is passed in.
"""

from __future__ import annotations

from typing import Protocol

from bigfleet_api.v1alpha1 import shard_pb2 as pb


class Clock(Protocol):
    """Two ways to tell the time; neither waits."""

    def now(self) -> int:
        """Unix nanoseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; the same count as the event loop's."""
        ...


class Line(Protocol):
    """One session's transport. It ends once, with a LineClosedError."""

    async def send(self, frame: bytes) -> None:
        """Hand over a frame; returns when the transport has taken it."""
        ...

    async def receive(self) -> pb.ShardMessage | None:
        """The next frame; None when the shard ended the session without complaint."""
        ...

    async def close(self) -> None:
        """Say that nothing more will come, and wait for the shard's end for a moment."""
        ...

    def drop(self) -> None:
        """Cut it at once."""
        ...


class Dial(Protocol):
    """Opens lines. Nothing is sent before the first frame, so a dead shard shows itself there."""

    async def __call__(self) -> Line:
        """A new line."""
        ...

    async def close(self) -> None:
        """No more lines."""
        ...
