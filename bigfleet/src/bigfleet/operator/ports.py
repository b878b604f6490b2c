"""What the operator needs from outside besides time: a stream to its shard.

Waiting is asyncio's, so a simulation brings its own event loop; chance is a `random.Random` that
is passed in.
"""

from __future__ import annotations

from typing import Protocol

from bigfleet.wire.session import SessionStream


class Dial(Protocol):
    """Opens streams. Nothing is sent before the first frame, so a dead shard shows itself there."""

    async def __call__(self) -> SessionStream:
        """A new stream."""

    async def close(self) -> None:
        """No more streams."""
