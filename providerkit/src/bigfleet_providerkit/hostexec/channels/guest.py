"""The guest channel: a hypervisor's agent inside the machine writes a file and runs a program.

The blob is written in pieces into a folder of /run that only root may enter, the wrapper is started
and its status polled until it ends. The blob never touches a disk: /run is memory, and the wrapper
removes the file however it ends, with what an earlier delivery may have left.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bigfleet_providerkit.clock import Clock
from bigfleet_providerkit.errors import HookFailed
from bigfleet_providerkit.hostexec.contract import RUN_FOLDER, tail
from bigfleet_providerkit.substrate import CommandKind, Host, HostCommand, HostResult

PIECE = 60 * 1024


@dataclass(frozen=True, slots=True)
class GuestStatus:
    """How far a program in the guest is; `result` is there once it has ended."""

    result: HostResult | None


class GuestAgent(Protocol):
    """What a hypervisor's guest agent can do."""

    async def write_file(self, host: Host, path: str, data: bytes, *, append: bool) -> None:
        """Write or extend a file in the guest, readable by root only."""
        ...

    async def execute(self, host: Host, script: str) -> str:
        """Start a script with sh; the handle of its process."""
        ...

    async def status(self, host: Host, handle: str) -> GuestStatus:
        """How far the process is."""
        ...


class GuestChannel:
    """Runs the wrapper through a guest agent."""

    def __init__(
        self, agent: GuestAgent, clock: Clock, pause: Callable[[], Awaitable[None]],
        folder: str = RUN_FOLDER,
    ) -> None:  # fmt: skip
        self._agent = agent
        self._clock = clock
        self._pause = pause
        self._folder = folder

    async def run(self, host: Host, command: HostCommand) -> HostResult:
        """The folder, the blob, then the wrapper."""
        ends = self._clock.monotonic() + command.limit
        script = command.script
        if command.kind is CommandKind.CONFIGURE:
            made = await self._run(host, command, folder_script(self._folder), ends)
            if made.exit_code != 0:
                return made
            path = f"{self._folder}/blob.{command.operation_id}"
            pieces = range(0, max(1, len(command.secret)), PIECE)
            for start in pieces:
                piece = command.secret[start : start + PIECE]
                await self._agent.write_file(host, path, piece, append=start > 0)
            script = script.replace("BIGFLEET_BLOB_FROM=stdin", f"BIGFLEET_BLOB_FROM={path}")
        return await self._run(host, command, script, ends)

    async def _run(self, host: Host, command: HostCommand, script: str, ends: float) -> HostResult:
        handle = await self._agent.execute(host, script)
        while True:
            status = await self._agent.status(host, handle)
            if status.result is not None:
                done = status.result
                return HostResult(done.exit_code, tail(done.stdout), tail(done.stderr))
            if self._clock.monotonic() > ends:
                raise HookFailed(f"{command.kind} did not end within {command.limit:.0f} s")
            await self._pause()


def folder_script(folder: str) -> str:
    """Makes the folder of the blob, which no other user may enter, and empties it of blobs."""
    return f"umask 077\nmkdir -p {folder} && chmod 700 {folder} && rm -f {folder}/blob.*\n"
