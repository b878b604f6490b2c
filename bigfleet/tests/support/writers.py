"""Replicas as processes that write, and what they said they wrote. See `store_writer`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from storing import until

SUPPORT = Path(__file__).parent


@dataclass
class Writer:
    """One replica that runs."""

    process: asyncio.subprocess.Process
    wrote: list[int] = field(default_factory=list)
    """Acknowledged, as far as it has said."""
    terms: list[int] = field(default_factory=list)
    led_at: list[float] = field(default_factory=list)
    """When it said so, by the monotonic clock."""
    refused: int = 0
    unknown: int = 0
    """Writes that may or may not have happened."""
    ended: bool = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """End it without a word, and hear what it had said."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await until(lambda: self.ended)

    async def wrote_more(self, count: int) -> None:
        """Until it has acknowledged so many more."""
        goal = len(self.wrote) + count
        await until(lambda: len(self.wrote) >= goal or self.ended)
        assert not self.ended, "the writer ended"

    async def listen(self) -> None:
        """Hear what it says until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            match line.decode().split():
                case ["wrote", number]:
                    self.wrote.append(int(number))
                case ["leading", term]:
                    self.terms.append(int(term))
                    self.led_at.append(time.monotonic())
                case ["refused"]:
                    self.refused += 1
                case ["unknown", *_]:
                    self.unknown += 1
        self.ended = True


@asynccontextmanager
async def writer(address: str, data_dir: Path, replica: str = "w") -> AsyncIterator[Writer]:
    """A replica in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SUPPORT / "store_writer.py"),
        address,
        str(data_dir),
        replica,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    running = Writer(process)
    listening = asyncio.ensure_future(running.listen())
    try:
        yield running
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
        await running.kill()
        await listening
