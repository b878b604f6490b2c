"""What the operator needs from outside besides time: a line to its shard.

Waiting is asyncio's, so a simulation brings its own event loop; chance is a `random.Random` that
is passed in.
"""

from __future__ import annotations

from typing import Protocol

from bigfleet.wire.session import Line


class Dial(Protocol):
    """Opens lines. Nothing is sent before the first frame, so a dead shard shows itself there."""

    async def __call__(self) -> Line:
        """A new line."""

    async def close(self) -> None:
        """No more lines."""
