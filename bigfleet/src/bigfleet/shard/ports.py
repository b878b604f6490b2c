"""What a shard needs from outside besides time: a disk, and a stream per session.

Everything else in this package reaches the world through these, so that a whole fleet can run in
one process on virtual time. Waiting is asyncio's (a simulation brings its own event loop), chance
is a `random.Random` that is passed in, and providers are reached through `bigfleet.provider`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from bigfleet.observe.process import Clock
from bigfleet.wire.rollup_limits import OverLimit
from bigfleet_api.v1alpha1 import shard_pb2 as pb

_NS: Final = 1e9


def steady(clock: Clock) -> Callable[[], int]:
    """Nanoseconds since some moment, for ages: setting the wall clock makes nothing older."""
    return lambda: int(clock.monotonic() * _NS)


class Disk(Protocol):
    """The data directory: a few small files. Blocking; call it through `Offload`."""

    def read(self, name: str) -> bytes | None:
        """The content of a file, None when there is none."""

    def replace(self, name: str, content: bytes) -> None:
        """The file has this content and it is flushed, or it has its old content."""

    def append(self, name: str, content: bytes) -> None:
        """The content is at the end of the file and flushed. A crash may leave a part of it."""


@dataclass(frozen=True, slots=True)
class OversizedRollUp:
    """A roll-up that is beyond a limit and was not decoded."""

    cluster_id: str
    timestamp_unix_nanos: int
    problem: OverLimit


class Stream(Protocol):
    """One operator's session, seen from the shard."""

    @property
    def identity(self) -> str | None:
        """The peer's single `bigfleet://` name; empty for none or several; None on plaintext."""

    async def receive(self) -> pb.OperatorMessage | OversizedRollUp | None:
        """The next frame; None when the operator closed its side."""

    async def send(self, message: pb.ShardMessage) -> None:
        """Hand over a frame; returns when the transport has taken it."""
