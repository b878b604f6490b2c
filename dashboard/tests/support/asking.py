"""The web of a dashboard in a test: an application over a state, asked without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from bigfleet_dashboard.config import Auth, Config
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.web import views
from bigfleet_dashboard.web.api import Api
from bigfleet_dashboard.web.app import make_app
from bigfleet_dashboard.web.events import EventStreams
from bigfleet_dashboard.whatif.service import WhatIf


@asynccontextmanager
async def browser_of(
    fleet: Fleet,
    auth: Auth | None = None,
    peer: str = "127.0.0.1",
    *,
    allowed: tuple[str, ...] = (),
    demo_socket: Path | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client that asks for pages of this state."""
    config = Config(coordinators=("127.0.0.1:1",), auth=auth or Auth(), allowed_hosts=allowed)
    whatif = WhatIf(fleet, Channels(None))
    api = Api(fleet, EventStreams(fleet, lambda: views.overview(fleet)), whatif, demo_socket)
    transport = httpx.ASGITransport(
        make_app(fleet, config, api), raise_app_exceptions=False, client=(peer, 1)
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8700") as client:
        yield client
