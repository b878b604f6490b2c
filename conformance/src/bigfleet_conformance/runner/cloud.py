"""The fake cloud of a run over HTTP: kept over every restart of the provider.

What a provider launched is still there after it was killed, as it would be in a real cloud. A lane
has one; stories with a state of their own have one each, because two stores under one label would
take each other's hosts for leftovers. Started
with `http.cloud` of conformance.yaml, in which `{port}` and `{latency_ms}` are filled in; without
them the flags `--addr` and `--latency-ms` are appended. A fake that gets `{facts}`, the path of a
file, writes there as a JSON object what a provider needs beside the address (`endpoint` where it is
https, `ca`, `ssh_port`, `ssh_key`): each of them is filled in for the provider by its name.
"""

import asyncio
import json
import os
import shlex
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bigfleet_conformance.errors import BootError

BOOT_LIMIT_S = 20.0


@dataclass(slots=True)
class FakeCloud:
    """Starts fake clouds, one per world."""

    command: str
    logs: Path
    _running: dict[str, tuple[asyncio.subprocess.Process, dict[str, str]]] = field(
        default_factory=dict
    )
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def words(self, world: str, slow_ms: int) -> dict[str, str]:
        """What is filled in for a provider: its cloud's address and a free port."""
        async with self._lock:
            if world not in self._running:
                self._running[world] = await self._start(world, slow_ms)
            return self._running[world][1]

    async def _start(
        self, world: str, slow_ms: int
    ) -> tuple[asyncio.subprocess.Process, dict[str, str]]:
        from bigfleet_conformance.runner.process import find_executable, free_port, tail

        port, bootstrap = free_port(), free_port()
        self.logs.mkdir(parents=True, exist_ok=True)
        facts = (self.logs / f"cloud-{world}-{port}.json").absolute()
        filled = self.command.replace("{port}", str(port)).replace("{latency_ms}", str(slow_ms))
        filled = filled.replace("{facts}", shlex.quote(str(facts)))
        arguments = shlex.split(filled)
        if arguments[0] in ("python", "python3"):
            arguments[0] = sys.executable
        else:
            arguments[0] = find_executable(arguments[0])
        if "{port}" not in self.command:
            arguments.append(f"--addr=127.0.0.1:{port}")
        if slow_ms and "{latency_ms}" not in self.command:
            arguments.append(f"--latency-ms={slow_ms}")
        log = self.logs / f"cloud-{world}-{port}.log"
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=dict(os.environ),
            )
        ends = time.monotonic() + BOOT_LIMIT_S
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                more = _facts(facts) if "{facts}" in self.command else {}
            except OSError:
                if process.returncode is not None or time.monotonic() > ends:
                    if process.returncode is None:
                        process.kill()
                    await process.wait()
                    raise BootError(f"the fake cloud did not start:\n{tail(log)}") from None
                await asyncio.sleep(0.02)
                continue
            words = {
                "endpoint": f"http://127.0.0.1:{port}",
                "bootstrap_port": str(bootstrap),
            }
            return process, {**words, **more}

    async def close(self) -> None:
        """End every fake cloud."""
        for process, _ in self._running.values():
            if process.returncode is None:
                process.kill()
            await process.wait()
        self._running.clear()


def _facts(path: Path) -> dict[str, str]:
    """What a fake cloud wrote for its callers; an OSError until it has done so."""
    shown = json.loads(path.read_text("utf-8"))
    return {str(name): str(value) for name, value in shown.items()}
