"""The cloud over HTTP: an ASGI application and the server that carries it.

Losing an answer means that not one byte of it leaves. ASGI has no word for that, so the protocol
of the server lends the application a way to cut its connection.
"""

import asyncio
import socket
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bigfleet_fakecloud.cloud import AnswerLost, Cloud
from bigfleet_fakecloud.http.call import Call, Reply
from bigfleet_fakecloud.http.control import PREFIX, Control

CUT = "bigfleet.cut"


class CuttingProtocol(H11Protocol):
    """HTTP/1.1 with a way out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Tell the application how to cut this connection."""
        super().connection_made(transport)
        # asyncio does this by itself only for sockets it made; without it a call takes 40 ms.
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        inner = self.app

        async def with_cut(scope: Scope, receive: Receive, send: Send) -> None:
            await inner({**scope, CUT: transport.abort}, receive, send)

        self.app = with_cut


def application(cloud: Cloud) -> ASGIApp:
    """Everything below /_control is for tests; the rest is the cloud."""
    control = Control(cloud)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(cloud, receive, send)
            return
        request = Request(scope, receive)
        call = Call(
            method=request.method,
            path=scope["path"],
            query=dict(request.query_params),
            headers=dict(request.headers),
            body=await request.body(),
            pairs=tuple(request.query_params.multi_items()),
            origin=f"{scope['scheme']}://{request.headers.get('host', '')}",
        )
        if call.path.startswith(PREFIX):
            reply = control.answer(call)
        else:
            try:
                reply = await cloud.answer(call)
            except AnswerLost:
                await _cut(scope, receive)
                return
        await _response(reply)(scope, receive, send)

    return serve


async def _live(cloud: Cloud, receive: Receive, send: Send) -> None:
    """Run the cloud's services from before the first call until after the last."""
    await receive()
    try:
        await cloud.background.start()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        raise
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await cloud.background.stop()
    await send({"type": "lifespan.shutdown.complete"})


async def _cut(scope: Scope, receive: Receive) -> None:
    cut: Callable[[], None] = scope[CUT]
    cut()
    # The server notices on its next turn; returning earlier would be taken for a mistake.
    while (await receive())["type"] != "http.disconnect":
        pass


def _response(reply: Reply) -> Response:
    content, kind = reply.encoded()
    headers = {"content-type": kind, **{k.lower(): v for k, v in reply.headers.items()}}
    return Response(content, reply.status, headers)
