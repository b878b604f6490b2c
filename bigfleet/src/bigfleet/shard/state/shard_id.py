"""Whose the data directory is: the id of its shard is written into it with the first start.

Epoch, journal and ownership of one shard are wrong for every other. Two shards that take turns in
one directory would count each other's epochs on and believe in each other's machines, so a second
one is refused before it reads anything. A directory from before this file was kept is taken over.
"""

from __future__ import annotations

from typing import Final

from bigfleet.shard.errors import DirectoryError
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.state_file import StateFile

FILE: Final = "shard-id"
_SHOWN: Final = 60


def take_directory(disk: Disk, shard_id: str) -> None:
    """Make sure that the directory is this shard's; blocking, the disk's errors pass through."""
    file = StateFile(disk, FILE, _encoded, _decoded, "write the id of its shard into it")
    owner = file.load()
    if owner is None:
        file.replace(shard_id)
    elif owner != shard_id:
        raise DirectoryError(
            f"the data directory is that of shard {owner[:_SHOWN]!r}, and this is shard "
            f"{shard_id!r}: give this one a --data-dir of its own, or start the other with its "
            "--shard-id"
        )


def _encoded(shard_id: str) -> bytes:
    return f"{shard_id}\n".encode()


def _decoded(content: bytes) -> str:
    # Bytes that are not text are shown as the id of another shard.
    return content.decode(errors="replace").strip()
