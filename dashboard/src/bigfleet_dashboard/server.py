"""The dashboard as a process: sources that gather and a server that answers, until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from bigfleet_base.http import HttpLimits
from bigfleet_base.http.connections import ConnectionTable
from bigfleet_dashboard.config import Config
from bigfleet_dashboard.errors import ConfigError
from bigfleet_dashboard.sources.collector import Collector
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.web import views
from bigfleet_dashboard.web.api import Api
from bigfleet_dashboard.web.app import make_app
from bigfleet_dashboard.web.connection_limits import PAGE_LIMITS, limited_protocol
from bigfleet_dashboard.web.events import EventStreams
from bigfleet_dashboard.whatif.service import WhatIf

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DashboardServer:
    """Where it can be reached."""

    address: str
    fleet: Fleet


class _Server(uvicorn.Server):
    """Signals are the owner's business."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def page_server(app: ASGIApp, limits: HttpLimits = PAGE_LIMITS) -> uvicorn.Server:
    """The server of the page, with bounded connections."""
    return _Server(
        uvicorn.Config(
            app, http=limited_protocol(ConnectionTable(limits.connections), limits),  # type: ignore[arg-type]
            ws="none", log_config=None, access_log=False, lifespan="off",
            timeout_graceful_shutdown=1, server_header=False, proxy_headers=False,
        )
    )  # fmt: skip


async def serve(
    config: Config,
    stop: asyncio.Event,
    listening: Callable[[DashboardServer], None] = lambda _: None,
) -> None:
    """Until told to stop; raises ConfigError where it cannot start."""
    fleet = Fleet()
    collector = Collector(config, fleet)
    news = EventStreams(fleet, lambda: views.overview(fleet))
    whatif = WhatIf(fleet, collector.channels)
    app = make_app(fleet, config, Api(fleet, news, whatif, config.demo_socket))
    sock = _bind(config)
    host, port = sock.getsockname()[:2]
    if not config.auth.header and not _is_loopback(host):
        _log.warning(
            "everybody who reaches this address may look", extra={"addr": f"{host}:{port}"}
        )
    server = page_server(app)
    tasks = [
        asyncio.create_task(collector.run(), name="collector"),
        asyncio.create_task(news.run(), name="news"),
        asyncio.create_task(server.serve(sockets=[sock]), name="server"),
        asyncio.create_task(stop.wait(), name="stop"),
    ]
    _log.info("listening", extra={"addr": f"{host}:{port}"})
    listening(DashboardServer(f"{host}:{port}", fleet))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        server.should_exit = True
        await whatif.close()
        for task in tasks[:2]:
            task.cancel()
        await asyncio.wait(tasks[2:3], timeout=2.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _bind(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((config.host, config.port))
    except OSError as error:
        sock.close()
        raise ConfigError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}; choose another with "
            "--listen host:port"
        ) from error
    sock.listen(PAGE_LIMITS.backlog)
    sock.setblocking(False)
    return sock


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host == "::1"
