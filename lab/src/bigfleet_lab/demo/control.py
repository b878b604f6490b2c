"""How a running demo is told to play a scenario: one JSON line to a socket in its data folder.

A file and no port: only who may write to the folder may ask, and no web page can. The dashboard
asks on behalf of its page; `bigfleet demo play` does on behalf of a terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bigfleet.cli.errors import FailureError, InputError
from bigfleet_lab.demo.scenarios import BY_NAME, SCENARIOS, Scenario
from bigfleet_lab.demo.supervisor import Supervisor

_LONGEST_PATH: Final = 100
"""What every system takes as the name of a socket."""
_PATIENCE: Final = 5.0


class Control:
    """Plays scenarios on the processes of a demo, and says what it plays."""

    def __init__(self, supervisor: Supervisor, dashboard: str = "") -> None:
        self._supervisor = supervisor
        self.dashboard = dashboard
        """Where what came of a scenario can be asked for."""
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, float] = {}

    async def order(self, part: str, **order: object) -> None:
        """Tell a simulated part what to do."""
        await self._supervisor[part].order(order)

    def strike(self, part: str, number: signal.Signals, down_seconds: float) -> None:
        """End a process; it comes back after so many seconds."""
        self._supervisor[part].strike(number, down_seconds)

    def play(self, name: str) -> Scenario:
        """Begin a scenario. One that is being played is not begun again."""
        scenario = BY_NAME.get(name)
        if scenario is None:
            raise InputError(f"{name!r} is not a scenario: choose from {', '.join(BY_NAME)}")
        running = self._playing.get(name)
        if running is None or running.done():
            self._last[name] = time.time()
            self._playing[name] = asyncio.ensure_future(scenario.play(self))
            self._playing[name].add_done_callback(_looked_at)
        return scenario

    def played_at(self, name: str) -> float:
        """When a scenario began the last time, in Unix seconds."""
        return self._last[name]

    def document(self) -> dict[str, object]:
        """What can be played, what is, and who runs."""
        return {
            "scenarios": [
                {
                    "name": each.name,
                    "short": each.short,
                    "title": each.title,
                    "watch": each.watch,
                    "look": each.look,
                    "playing": each.name in self._playing and not self._playing[each.name].done(),
                    "played_at": self._last.get(each.name),
                }
                for each in SCENARIOS
            ],
            "processes": self._supervisor.pids(),
        }

    def close(self) -> None:
        """No scenario goes on."""
        for task in self._playing.values():
            task.cancel()


async def listen(control: Control, path: Path) -> asyncio.AbstractServer:
    """Take requests at a socket. One left behind by a demo that was killed is replaced."""
    if len(str(path)) > _LONGEST_PATH:
        raise InputError(f"{path} is too long for a socket: give a shorter --data-dir")
    await asyncio.to_thread(path.unlink, missing_ok=True)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            line = await asyncio.wait_for(reader.readline(), _PATIENCE)
            writer.write(json.dumps(_answer(control, line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    await asyncio.to_thread(path.chmod, 0o600)
    return server


def _answer(control: Control, line: bytes) -> Mapping[str, object]:
    try:
        request = json.loads(line)
        if request.get("do") == "play":
            played = control.play(str(request.get("name")))
            return {
                "playing": played.title,
                "watch": played.watch,
                "look": played.look,
                "dashboard": control.dashboard,
                "played_at": control.played_at(played.name),
            }
        return control.document()
    except (InputError, ValueError, AttributeError) as error:
        return {"error": str(error)}


async def ask(path: Path, request: Mapping[str, object]) -> dict[str, Any]:
    """What a running demo answers."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(json.dumps(request).encode() + b"\n")
            answer = json.loads(await reader.readline())
            writer.close()
    except (OSError, ValueError) as error:
        raise FailureError(
            f"no demo answers at {path} ({error}): start one with `bigfleet demo`, or name its "
            "--data-dir"
        ) from None
    if "error" in answer:
        raise InputError(str(answer["error"]))
    return dict(answer)


def _looked_at(task: asyncio.Task[None]) -> None:
    """A part that is down for the moment receives no order; its log says that it is down."""
    if not task.cancelled():
        task.exception()
