"""A whole demo as processes, with ports of its own, started and stopped for a test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    "--dashboard-addr",
    "--coordinator-addr",
    "--coordinator-metrics-addr",
    "--shard-addr",
    "--shard-metrics-addr",
    "--provider-addr",
    "--provider-metrics-addr",
)


def free_addresses(count: int) -> list[str]:
    """Addresses of the loopback interface that are free at the moment."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(f"127.0.0.1:{probe.getsockname()[1]}")
        return found


@dataclass
class Demo:
    """A demo that runs."""

    process: asyncio.subprocess.Process
    folder: Path
    addresses: dict[str, str]
    http: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://{self.addresses['--dashboard-addr']}"

    async def get(self, path: str) -> Any:
        """What the API says."""
        async with self.http.get(f"{self.url}/api/v1{path}") as answer:
            return await answer.json()

    async def post(self, path: str, body: object) -> tuple[int, Any]:
        """What the API says to something sent."""
        async with self.http.post(f"{self.url}/api/v1{path}", json=body) as answer:
            return answer.status, await answer.json()

    async def until(self, path: str, true: Any, seconds: float = 60.0) -> Any:
        """Ask until an answer is as wanted; the answer."""
        told: Any = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if self.process.returncode is not None:
                        raise AssertionError(f"the demo has ended: {self.said()}")
                    with contextlib.suppress(aiohttp.ClientError, TypeError, KeyError):
                        told = await self.get(path)
                        if true(told):
                            return told
                    await asyncio.sleep(0.2)
        except TimeoutError:
            said = self.said()
            raise AssertionError(f"{path} never became as wanted; last: {told}; {said}") from None

    def said(self) -> str:
        """Its last words."""
        return self.folder.with_suffix(".out").read_text("utf-8", "replace")[-2000:]

    def children(self) -> set[int]:
        """Processes that belong to it, by the folder they work in."""
        mine = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes()
                    if str(self.folder).encode() in words or self.shard.encode() in words:
                        mine.add(int(entry.name))
        return mine - {os.getpid()}

    @property
    def shard(self) -> str:
        """Where the shard listens: also said to the process that is the clusters."""
        return self.addresses["--shard-addr"]

    async def until_none_is_left(self, seconds: float = 20.0) -> None:
        """Wait until all its processes are gone."""
        async with asyncio.timeout(seconds):
            while self.children():  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def stop(self, number: signal.Signals = signal.SIGINT) -> float:
        """End it; how many seconds that took."""
        began = asyncio.get_running_loop().time()
        if self.process.returncode is None:
            self.process.send_signal(number)
            await asyncio.wait_for(self.process.wait(), 30)
        return asyncio.get_running_loop().time() - began


async def start(
    folder: Path, http: aiohttp.ClientSession, environment: Mapping[str, str] | None = None
) -> Demo:
    """Start one, in an environment with these variables too; it may still be coming up."""
    addresses = dict(zip(FLAGS, free_addresses(len(FLAGS)), strict=True))
    words = [word for pair in addresses.items() for word in pair]
    log = (folder.parent / f"{folder.name}.out").open("ab")
    with log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bigfleet.cli.main", "demo", "--data-dir", str(folder), *words,
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    return Demo(process, folder, addresses, http)


@contextlib.asynccontextmanager
async def a_demo(environment: Mapping[str, str] | None = None) -> AsyncIterator[Demo]:
    """A demo that serves, and is gone afterwards."""
    # A short path: sockets have names of limited length.
    with tempfile.TemporaryDirectory(prefix="bf-", ignore_cleanup_errors=True) as folder:
        async with aiohttp.ClientSession() as http:
            demo = await start(Path(folder) / "d", http, environment)
            try:
                await demo.until("/overview", lambda o: o["clusters"]["connected"] == 3, 110)
                yield demo
            finally:
                await demo.stop()
