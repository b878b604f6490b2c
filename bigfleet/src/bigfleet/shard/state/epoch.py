"""The epoch of this process: a number that no earlier process of this shard has used.

Providers refuse a process with an older one, so it is written down, flushed, before the first
mutation. A lost file is replaced by the time of day, which is beyond any counter; an unreadable
one is not guessed at.
"""

from __future__ import annotations

import logging
from typing import Final

from bigfleet.shard.ports import Disk
from bigfleet.shard.state.errors import EpochError
from bigfleet.shard.state.state_file import StateFile

FILE: Final = "epoch"
_MOST: Final = 2**63 - 1
_DIGITS: Final = len(str(_MOST))
_REMEDY: Final = (
    "write a decimal number above every epoch this shard has used into it (metric "
    "bigfleet_shard_epoch), or remove it to start from the time of day, or start with --epoch N"
)
_SECOND: Final = 1_000_000_000
_log = logging.getLogger(__name__)


def next_epoch(disk: Disk, now: int, override: int | None = None) -> int:
    """The epoch to use for the life of this process, already written. `now` in Unix nanoseconds.

    Blocking; the disk's own errors pass through.
    """
    file = StateFile(disk, FILE, _encoded, _decoded, _REMEDY, EpochError)
    epoch = _checked_override(override) if override is not None else _after(file.load(), now)
    file.replace(epoch)
    return epoch


def _checked_override(epoch: int) -> int:
    if not 1 <= epoch <= _MOST:
        raise EpochError(f"epoch {epoch} cannot be used: give one from 1 to {_MOST}")
    return epoch


def _after(last: int | None, now: int) -> int:
    if last is not None:
        return last + 1
    epoch = max(1, now // _SECOND)
    _log.warning(
        "no epoch file: starting from the time of day; if this shard ran here before, "
        "its volume was lost",
        extra={"epoch": epoch},
    )
    return epoch


def _encoded(epoch: int) -> bytes:
    return f"{epoch}\n".encode()


def _decoded(content: bytes) -> int:
    text = content.strip()
    # isdigit on bytes knows ASCII digits only. The last epoch there is has no successor.
    if not text.isdigit() or len(text) > _DIGITS or int(text) >= _MOST:
        raise ValueError(f"it holds {content[:40]!r}, which is not an epoch")
    return int(text)
