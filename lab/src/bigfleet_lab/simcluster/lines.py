"""Streams over gRPC. Many clusters share a connection, each with a stream of its own.

With TLS a certificate stands for one cluster; a path with `{cluster}` in it names one per cluster,
and then each cluster has its own connection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

import grpc
import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet.wire.session import GrpcSessionStream, open_session_stream
from bigfleet.wire.tls import TlsFiles

STREAMS_PER_CHANNEL: Final = 64

Credentials = Callable[[str], grpc.ChannelCredentials | None]


def credentials_from(cert: str | None, key: str | None, ca: str | None) -> tuple[Credentials, bool]:
    """Credentials per cluster of `--tls-*`, and whether each cluster has its own."""
    own = any("{cluster}" in (path or "") for path in (cert, key, ca))

    def files(cluster_id: str) -> TlsFiles | None:
        paths = ((path or "").replace("{cluster}", cluster_id) for path in (cert, key, ca))
        return TlsFiles.of(*paths)

    if own:
        return (lambda cluster_id: _read(files(cluster_id))), True
    shared = _read(files(""))
    return (lambda _: shared), False


def _read(files: TlsFiles | None) -> grpc.ChannelCredentials | None:
    return None if files is None else files.read()


class GrpcDial:
    """Streams to a shard at an address."""

    def __init__(
        self, address: str, credentials: Credentials | None = None, *, per_cluster: bool = False
    ) -> None:
        self._address = address
        self._credentials: Credentials = credentials or (lambda _: None)
        self._per_cluster = per_cluster
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._place: dict[str, int] = {}
        self._places = itertools.count()

    async def __call__(self, cluster_id: str) -> GrpcSessionStream:
        """A new stream on the cluster's connection, which is dialled when first used."""
        place = self._place.get(cluster_id)
        if place is None:
            place = self._place[cluster_id] = next(self._places)
        name = cluster_id if self._per_cluster else str(place // STREAMS_PER_CHANNEL)
        channel = self._channels.get(name)
        if channel is None:
            channel = open_channel(self._address, self._credentials(cluster_id))
            self._channels[name] = channel
        return open_session_stream(channel)

    async def close(self) -> None:
        """All connections end."""
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            await channel.close()
