"""The protocol of one connection to the page, with the limits of every HTTP server of ours.

uvicorn reads requests and writes responses; it waits for a client that sends nothing, and
its own limit on connections answers 503 to everyone. This adds what `bigfleet_base.http` has: a
table of connections in which the one that has waited longest for its request makes room, and a
deadline for each request to arrive and for each response to be taken. A page that listens for
events is being answered, so it is never closed for another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from bigfleet_base.http.connections import ConnectionTable
from bigfleet_base.http.limits import HttpLimits

PAGE_LIMITS: Final = HttpLimits(connections=1024)
"""More than pages that listen for events (`events.MOST_PAGES`), with their requests beside them."""
_ARRIVED: Final = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED})


def limited_protocol(
    table: ConnectionTable, limits: HttpLimits = PAGE_LIMITS
) -> Callable[..., H11Protocol]:
    """What uvicorn makes for each connection of one server."""

    def make(*given: Any, **named: Any) -> H11Protocol:
        return _LimitedProtocol(table, limits, *given, **named)

    return make


class _LimitedProtocol(H11Protocol):
    def __init__(
        self, table: ConnectionTable, limits: HttpLimits, *given: Any, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._table, self._limits = table, limits
        self._timer: asyncio.TimerHandle | None = None
        self._is_answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._table.make_room():
            transport.abort()
            return
        self._table.waits(self)
        self._within(self._limits.request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        self._table.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._within(self._limits.write)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._within(None if self._is_answering else self._limits.request)

    def evict(self) -> None:
        """Close without a response."""
        self.transport.abort()

    def _follow(self) -> None:
        """Whether the request has arrived by now, or the next one is waited for."""
        # uvicorn's annotation leaves out that there is none before the first request.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        has_response = cycle is None or cycle.response_complete
        is_answering = not has_response and self.conn.their_state in _ARRIVED
        if is_answering == self._is_answering or self.transport.is_closing():
            return
        self._is_answering = is_answering
        if is_answering:
            self._table.answers(self)
            self._within(None)
        else:
            self._table.waits(self)
            self._within(self._limits.request)

    def _within(self, seconds: float | None) -> None:
        """Cut the connection unless its present step ends in time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.evict)
