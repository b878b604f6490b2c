"""The kill switch of a shard on disk: whether it is paused, and why, over restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk

PAUSE_FILE: Final = "paused.json"


class Pause:
    """The kill switch, and why it was thrown. `shown` is told each time whether it is on."""

    def __init__(self, disk: Disk, offload: Offload, shown: Callable[[bool], None]) -> None:
        self._disk = disk
        self._offload = offload
        self._shown = shown
        self._writing = asyncio.Lock()
        self._pauses = 0
        self.on = False
        self.reason = ""

    async def load(self) -> None:
        """As it was before the restart. A file that cannot be read means paused: a person wrote
        it.
        """
        content = await self._offload(lambda: self._disk.read(PAUSE_FILE))
        on, reason = _pause_of(content)
        self._set(on, reason)

    async def pause(self, reason: str) -> None:
        """Execute nothing from now on; durable when it returns."""
        self._pauses += 1
        self._set(True, reason)
        await self._write({"paused": True, "reason": reason})

    async def resume(self) -> None:
        """Execute again; only when that is durable, and unless a person pauses meanwhile."""
        before = self._pauses
        await self._write({"paused": False, "reason": ""})
        if self._pauses == before:
            self._set(False, "")

    async def _write(self, state: Mapping[str, object]) -> None:
        """One after the other, as they were asked for: the last word is the one on disk."""
        content = json.dumps(state).encode()
        async with self._writing:
            await self._offload(lambda: self._disk.replace(PAUSE_FILE, content))

    def _set(self, on: bool, reason: str) -> None:
        self.on, self.reason = on, reason
        self._shown(on)


def _pause_of(content: bytes | None) -> tuple[bool, str]:
    if content is None:
        return False, ""
    try:
        state = json.loads(content)
        return bool(state["paused"]), str(state["reason"])
    except (ValueError, KeyError, TypeError):
        return True, f"{PAUSE_FILE} cannot be read; resume to write it again"
