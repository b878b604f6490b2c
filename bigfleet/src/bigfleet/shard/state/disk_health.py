"""Whether the data directory takes what is written, for /readyz.

Who writes says itself what a failed write means; here it is only remembered until a write succeeds
again. While it is not, `probe` tries every few seconds, because it may be long until something has
to be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk

PROBE_FILE: Final = "probe"
PROBE_SECONDS: Final = 5.0
_PROBE: Final = b"written to find out whether the disk takes anything\n"


class DiskHealth:
    """A disk that remembers how the last write went."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.trouble = ""
        """What kept the last write from succeeding; empty when it did."""

    def read(self, name: str) -> bytes | None:
        """The content of a file, None when there is none."""
        return self._disk.read(name)

    def replace(self, name: str, content: bytes) -> None:
        """The file has this content and it is flushed, or it has its old content."""
        with self._noted():
            self._disk.replace(name, content)

    def append(self, name: str, content: bytes) -> None:
        """The content is at the end of the file and flushed."""
        with self._noted():
            self._disk.append(name, content)

    async def probe(self, offload: Offload) -> None:
        """Find out when the trouble is over, until cancelled."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            if self.trouble:
                await offload(self._try)

    def _try(self) -> None:
        try:
            self.replace(PROBE_FILE, _PROBE)
        except OSError:
            # It is noted, and shown.
            return

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.trouble = str(error)
            raise
        self.trouble = ""
