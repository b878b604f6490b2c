"""Where the operator's sessions go, dialled out. It never listens for the shard.

TLS files are looked at when a stream is dialled and, since a stream may last for weeks, every ten
seconds beside that. Files that changed are used by the next stream; an open one
goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet.wire.session import GrpcSessionStream, open_session_stream
from bigfleet.wire.tls import LOOK_EVERY_SECONDS, ClientTls


class GrpcDial:
    """Streams to the shard at an address; plaintext without TLS files."""

    def __init__(
        self,
        address: str,
        tls: ClientTls | None = None,
        on_fresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._address, self._tls, self._on_fresh = address, tls, on_fresh
        self._channel: grpc.aio.Channel | None = None
        self._outdated = False
        """The connection was made with files that have changed since."""

    async def __call__(self) -> GrpcSessionStream:
        """A new stream on the one connection, which is dialled when first used."""
        self._look()
        if self._outdated:
            await self.close()
        if self._channel is None:
            credentials = None if self._tls is None else self._tls.credentials
            self._channel = open_channel(self._address, credentials)
        return open_session_stream(self._channel)

    async def follow(self) -> None:
        """Notice new files while a stream lasts, until cancelled."""
        while self._tls is not None:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            self._look()

    async def close(self) -> None:
        """The connection ends."""
        self._outdated = False
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _look(self) -> None:
        if self._tls is not None and self._tls.fresh():
            self._outdated = True
            self._on_fresh()
