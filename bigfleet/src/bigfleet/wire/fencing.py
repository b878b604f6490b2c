"""Fencing tokens: what lets a provider tell a shard from its own past.

A token is the shard, the epoch of its process and a number that is used once. Providers compare
them per machine, so one counter serves all machines and all providers of a process. Where the epoch
comes from is the shard's business.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

from bigfleet.wire.errors import FencingError

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Token:
    """One attempt of one mutation."""

    shard_id: str
    epoch: int
    sequence: int


class FencingStamps:
    """The tokens of one process: numbers from 1 on, each given once."""

    def __init__(self, shard_id: str, epoch: int) -> None:
        if not shard_id:
            raise FencingError("a shard without an id cannot be fenced: give it one")
        if not 1 <= epoch <= _INT64_MAX:
            raise FencingError(
                f"epoch {epoch} of shard {shard_id!r} is not usable: use 1 to {_INT64_MAX}"
            )
        self.shard_id = shard_id
        self.epoch = epoch
        self._numbers = itertools.count(1)

    def next(self) -> Token:
        """A token that was never used. Take a new one for every attempt, retries included."""
        return Token(self.shard_id, self.epoch, next(self._numbers))
