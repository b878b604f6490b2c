"""A gRPC server as every component of ours runs it: large messages, keepalive, health, reflection,
plaintext or mTLS.

Liveness is the health of the empty service name and holds while the process runs; readiness is
that of each served service and is told by the component. What the services do is theirs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bigfleet.wire.channel import MAX_MESSAGE_BYTES
from bigfleet.wire.errors import WireError
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import LOOK_EVERY_SECONDS
from bigfleet_base.addresses import AddressError, Endpoint, bind_endpoint

SERVER_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # As in `channel`: no ping for every little request.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    # Two processes on one port would share its calls instead of one of them being told.
    ("grpc.so_reuseport", 0),
)
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
_log = logging.getLogger(__name__)


class ListenError(WireError):
    """The server cannot listen where it was told to."""


class WireServer:
    """One port with some services. Add their handlers to `grpc` before `start`."""

    def __init__(
        self,
        services: Sequence[str],
        tls: ServerTls | None = None,
        look_every: float = LOOK_EVERY_SECONDS,
    ) -> None:
        self.grpc = grpc.aio.server(
            options=SERVER_OPTIONS, compression=grpc.Compression.NoCompression
        )
        self._services = tuple(services)
        self._tls = tls
        self._look_every = look_every
        self._looking: asyncio.Task[None] | None = None
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        names = (*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self.grpc)

    async def start(self, address: str, flag: str = "--listen") -> str:
        """Listen at `host:port` or `:port`; the address of the socket.

        Alive from now on, ready when `ready` is called.
        """
        try:
            target = bind_endpoint(Endpoint.parse(address, f"{flag} host:port or :port"))
        except AddressError as error:
            raise ListenError(str(error)) from error
        try:
            if self._tls is None:
                bound = self.grpc.add_insecure_port(str(target))
            else:
                bound = self.grpc.add_secure_port(str(target), self._tls.credentials())
        except RuntimeError as error:
            raise ListenError(
                f"cannot listen on {address}: the port is taken or not allowed; change {flag}"
            ) from error
        for service in self._services:
            await self._health.set(service, _NOT_SERVING)
        await self._health.set("", _SERVING)
        await self.grpc.start()
        if self._tls is not None:
            self._looking = asyncio.create_task(self._look(self._tls))
        where = str(Endpoint(target.host, bound))
        _log.info("listening", extra={"addr": where, "tls": "on" if self._tls else "off"})
        return where

    async def ready(self, is_ready: bool, services: Iterable[str] | None = None) -> None:
        """Readiness of these services, or of all."""
        for service in self._services if services is None else services:
            await self._health.set(service, _SERVING if is_ready else _NOT_SERVING)

    async def stop(self, grace: float) -> None:
        """Not ready, no new calls; those under way get some time."""
        if self._looking is not None:
            self._looking.cancel()
        await self.ready(False)
        await self.grpc.stop(grace)

    async def _look(self, tls: ServerTls) -> None:
        """Notice new files without a handshake: when they end is shown from then on."""
        while True:
            await asyncio.sleep(self._look_every)
            tls.look()
