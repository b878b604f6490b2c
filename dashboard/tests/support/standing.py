"""A page over a state that no task gathers: what a test puts there is what is shown."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from bigfleet_base.http import HttpLimits
from bigfleet_dashboard.config import Config
from bigfleet_dashboard.server import page_server
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.web import views
from bigfleet_dashboard.web.api import Api
from bigfleet_dashboard.web.app import make_app
from bigfleet_dashboard.web.connection_limits import PAGE_LIMITS
from bigfleet_dashboard.web.events import EventStreams
from bigfleet_dashboard.whatif.service import WhatIf


class Door:
    """In front of the page, as a proxy is; refuses whatever begins with `closed`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.closed = ""
        self.refused = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer 502."""
        if scope["type"] == "http" and self.closed and scope["path"].startswith(self.closed):
            self.refused += 1
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": b"bad gateway"})
            return
        await self._app(scope, receive, send)


@asynccontextmanager
async def a_page_over(
    fleet: Fleet, limits: HttpLimits = PAGE_LIMITS
) -> AsyncIterator[tuple[str, Door]]:
    """Where the page is, and the door in front of it."""
    news = EventStreams(fleet, lambda: views.overview(fleet))
    api = Api(fleet, news, WhatIf(fleet, Channels(None)), None)
    door = Door(make_app(fleet, Config(coordinators=("127.0.0.1:1",)), api))
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(limits.backlog)
    server = page_server(door, limits)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    telling = asyncio.create_task(news.run())
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", door
    finally:
        telling.cancel()
        server.should_exit = server.force_exit = True
        await asyncio.gather(telling, serving, return_exceptions=True)
