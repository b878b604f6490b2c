"""Connections of one run of bigfleetctl: how long to wait, and plaintext or mTLS."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import grpc.aio

from bigfleet.cli.ctl.context import Options
from bigfleet.cli.errors import InputError
from bigfleet.observe.settings import parse_duration
from bigfleet.wire.channel import open_channel
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles


class Channels:
    """Connections, one per address, made when first used."""

    def __init__(self, seconds: float, tls: TlsFiles | None = None) -> None:
        self.seconds = seconds
        self.tls = tls
        self._credentials = None if tls is None else tls.read()
        self._channels: dict[str, grpc.aio.Channel] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        """The connection to an address."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address, self._credentials)
        return channel

    async def close(self) -> None:
        """All connections end."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()


def connection(options: Options) -> Callable[[], Channels]:
    """Connections with these options; bad options are refused at once."""
    try:
        seconds = parse_duration(options.timeout)
    except ValueError as error:
        raise InputError(f"--timeout: {error}") from None
    if not 0 < seconds < 86_400:
        raise InputError(f"--timeout {options.timeout} is out of range: write it like 10s")
    try:
        files = TlsFiles.of(options.tls_cert, options.tls_key, options.tls_ca)
        if files is not None:
            files.contents()
    except TlsFilesError as error:
        raise InputError(str(error)) from None
    return lambda: Channels(seconds, files)
