"""The HTTP server: a thread with an event loop of its own, which accepts and serves connections.

The listening socket is open when the constructor returns, so an address that cannot be used is an
error at the start. Connections are accepted by this module and not by asyncio's server, because
two things are decided for each of them: whether there is room, and which TLS context is in use by
now.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import Final

from bigfleet_base.http.connection import HttpConnection, Respond, Site
from bigfleet_base.http.connections import ConnectionTable
from bigfleet_base.http.limits import HttpLimits
from bigfleet_base.http.messages import Request, Response, Route, text
from bigfleet_base.http.sockets import address_of, listen
from bigfleet_base.http.workers import Workers

ACCEPTS_A_TURN: Final = 64
"""New connections before those that are open get their turn."""
ACCEPT_PAUSE_SECONDS: Final = 0.1
"""After an accept that failed, which it does when the process has no file descriptor left."""
COMPLAIN_EVERY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 1.0
Tls = Callable[[], ssl.SSLContext]
"""The context in use now; looked up for each connection, so new files count from the next one."""
_DEFAULTS: Final = HttpLimits()
_log = logging.getLogger(__name__)


class HttpServer:
    """Serves routes at `host:port` or `:port`; errors name `flag` as the one to change.

    Handlers that are coroutine functions run on the event loop that is running here and now.
    """

    def __init__(
        self,
        address: str,
        routes: Mapping[str, Route],
        flag: str = "--metrics-addr",
        limits: HttpLimits = _DEFAULTS,
        tls: Tls | None = None,
    ) -> None:
        self._limits, self._tls = limits, tls
        has_coroutines = any(iscoroutinefunction(route.handler) for route in routes.values())
        self._owner = asyncio.get_running_loop() if has_coroutines else None
        self._listener = listen(address, flag, limits.backlog)
        self.address = address_of(self._listener)
        self._table = ConnectionTable(limits.connections)
        self._workers = Workers("http-page", limits.workers)
        self._site = Site(dict(routes), limits, self._table, self._run)
        self._complained_monotonic_s = -COMPLAIN_EVERY_SECONDS
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._table)

    def close(self) -> None:
        """Stop listening and cut every connection. Handlers that still run are left behind."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)
        self._workers.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.add_reader(self._listener, self._accept)
        try:
            self._loop.run_forever()
        finally:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._table.evict_all()
            # One more turn, in which transports close their sockets.
            self._loop.run_until_complete(_cancel_tasks())
            self._loop.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._complain("a connection cannot be accepted", error=str(error))
                self._loop.remove_reader(self._listener)
                self._loop.call_later(
                    ACCEPT_PAUSE_SECONDS, self._loop.add_reader, self._listener, self._accept
                )
                return
            self._admit(accepted)

    def _admit(self, accepted: socket.socket) -> None:
        if len(self._table) >= self._limits.connections:
            self._complain(
                "all connections are in use; the one that waits longest for its request is closed"
            )
        if not self._table.make_room():
            accepted.close()
            return
        accepted.setblocking(False)
        connection = HttpConnection(self._site)
        connection.opening = self._loop.create_task(self._open(connection, accepted))
        connection.opening.add_done_callback(partial(self._opened, connection, accepted))

    async def _open(self, connection: HttpConnection, accepted: socket.socket) -> None:
        """Make the connection, with a handshake where it is TLS."""
        context = None if self._tls is None else self._tls()
        await self._loop.connect_accepted_socket(
            lambda: connection,
            accepted,
            ssl=context,
            ssl_handshake_timeout=None if context is None else self._limits.request,
        )

    def _opened(
        self, connection: HttpConnection, accepted: socket.socket, opening: asyncio.Task[None]
    ) -> None:
        connection.opening = None
        # A task that is cancelled before its first step has not touched the socket.
        error = asyncio.CancelledError() if opening.cancelled() else opening.exception()
        if error is None:
            return
        accepted.close()
        self._table.closed(connection)
        if not isinstance(error, (OSError, asyncio.CancelledError)):
            self._complain("a connection cannot be served", error=str(error))

    def _complain(self, line: str, **extra: object) -> None:
        """A warning, at most once a minute: a client must not be able to fill the log."""
        now = self._loop.time()
        if now - self._complained_monotonic_s >= COMPLAIN_EVERY_SECONDS:
            self._complained_monotonic_s = now
            known = {"connections": len(self._table), "evicted": self._table.evicted}
            _log.warning(line, extra={"addr": self.address, **known, **extra})

    def _run(self, route: Route, request: Request, respond: Respond) -> None:
        if iscoroutinefunction(route.handler):
            self._loop.create_task(self._on_owner(route, request, respond))
        elif route.immediate:
            respond(_answer(route, request))
        else:
            self._workers.submit(partial(self._on_worker, route, request, respond))

    def _on_worker(self, route: Route, request: Request, respond: Respond) -> None:
        response = _answer(route, request)
        try:
            self._loop.call_soon_threadsafe(respond, response)
        except RuntimeError:
            _log.debug("page not delivered: the server has stopped", extra={"path": request.path})

    async def _on_owner(self, route: Route, request: Request, respond: Respond) -> None:
        assert self._owner is not None
        running = asyncio.run_coroutine_threadsafe(_call(route, request), self._owner)
        try:
            async with asyncio.timeout(self._limits.handler):
                response = await asyncio.wrap_future(running)
        except TimeoutError:
            response = text("no answer in time; try again", 503)
        respond(response)


def _answer(route: Route, request: Request) -> Response:
    try:
        response = route.handler(request)
        assert isinstance(response, Response)
        return response
    except Exception:  # noqa: BLE001 - a broken page is logged, and the others are served
        return _broken(request)


async def _call(route: Route, request: Request) -> Response:
    try:
        response = route.handler(request)
        assert not isinstance(response, Response)
        return await response
    except Exception:  # noqa: BLE001 - a broken page is logged, and the others are served
        return _broken(request)


def _broken(request: Request) -> Response:
    _log.exception("an HTTP page failed", extra={"path": request.path})
    return text("this page is broken; the log says why", 500)


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
