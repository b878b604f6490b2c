"""A wire that a test can cut: bytes pass between a port of its own and a target, until they do not.

A cut is silent, as a lost network is: connections stay open and nothing arrives any more, new ones
are taken and never answered. Repairing ends what was cut, so that both sides dial again. With a TLS
context the port speaks TLS and the target hears what was inside.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress


class Proxy:
    """One port in front of one target."""

    def __init__(self, target: str, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""
        self.names: list[tuple[str, str]] = []
        """What the certificates of those who connected are for."""

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._end_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Nothing passes any more."""
        self._open.clear()

    def repair(self) -> None:
        """Bytes pass again, over new connections."""
        self._end_all()
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        certificate = writer.get_extra_info("peercert") or {}
        self.names += certificate.get("subjectAltName", ())
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection(*self._target)
            self._writers.add(back)
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while content := await source.read(65536):
                await self._open.wait()
                sink.write(content)
                await sink.drain()
        sink.close()

    def _end_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
