"""The kill switch of a shard on disk: whether it is paused, and why, over restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.state_file import StateFile

PAUSE_FILE: Final = "paused.json"


class Pause:
    """The kill switch, and why it was thrown. `shown` is told each time whether it is on."""

    def __init__(self, disk: Disk, offload: Offload, shown: Callable[[bool], None]) -> None:
        self._file = StateFile(disk, PAUSE_FILE, _encoded, _decoded, "resume to write it again")
        self._offload = offload
        self._shown = shown
        self._writing = asyncio.Lock()
        self._pauses = 0
        self.on = False
        self.reason = ""

    async def load(self) -> None:
        """As it was before the restart. A file that cannot be read means paused: a person may have
        paused it.
        """
        try:
            state = await self._offload(lambda: self._file.load())
            on, reason = state or (False, "")
        except DataFileError as error:
            on, reason = True, str(error)
        self._set(on, reason)

    async def pause(self, reason: str) -> None:
        """Execute nothing from now on; durable when it returns."""
        self._pauses += 1
        self._set(True, reason)
        await self._write((True, reason))

    async def resume(self) -> None:
        """Execute again; only when that is durable, and unless a person pauses meanwhile."""
        before = self._pauses
        await self._write((False, ""))
        if self._pauses == before:
            self._set(False, "")

    async def _write(self, state: tuple[bool, str]) -> None:
        """One after the other, as they were requested: the last one is the one on disk."""
        async with self._writing:
            await self._file.write(state, self._offload)

    def _set(self, on: bool, reason: str) -> None:
        self.on, self.reason = on, reason
        self._shown(on)


def _encoded(state: tuple[bool, str]) -> bytes:
    on, reason = state
    return json.dumps({"paused": on, "reason": reason}).encode()


def _decoded(content: bytes) -> tuple[bool, str]:
    state = json.loads(content)
    return bool(state["paused"]), str(state["reason"])
