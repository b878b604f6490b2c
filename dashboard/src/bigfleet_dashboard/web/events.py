"""News for open pages: server-sent events, a bounded queue for each.

A page that cannot keep up loses what it has not read and is told to reload; no other page waits for
it. A line every few seconds keeps proxies from hanging up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from bigfleet_dashboard.errors import UnavailableError
from bigfleet_dashboard.state.fleet import Fleet

QUEUE: Final = 32
MOST_PAGES: Final = 500
_EVERY_SECONDS: Final = 0.5
_QUIET_SECONDS: Final = 10.0
_MOST_DECISIONS: Final = 200
_encode = msgspec.json.Encoder().encode
Overview = Callable[[], dict[str, object]]


class Page:
    """One open page."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUE)

    def put(self, event: bytes) -> None:
        """News; too much of it becomes one word."""
        if self._queue.full():
            while not self._queue.empty():
                self._queue.get_nowait()
            event = _event("reload", {})
        self._queue.put_nowait(event)

    async def stream(self) -> AsyncIterator[bytes]:
        """Everything for this page."""
        yield b"retry: 2000\n\n"
        while True:
            try:
                async with asyncio.timeout(_QUIET_SECONDS):
                    event = await self._queue.get()
            except TimeoutError:
                event = b": still here\n\n"
            yield event


class EventStreams:
    """All open pages, and what they are told."""

    def __init__(self, fleet: Fleet, overview: Overview) -> None:
        self._fleet, self._overview = fleet, overview
        self._pages: set[Page] = set()

    def __len__(self) -> int:
        return len(self._pages)

    def open(self) -> Page:
        """One more page; it is told at once how things are."""
        if len(self._pages) >= MOST_PAGES:
            raise UnavailableError(f"{MOST_PAGES} pages are open already: close one")
        page = Page()
        self._pages.add(page)
        page.put(_event("overview", self._overview()))
        return page

    def close(self, page: Page) -> None:
        """It is gone."""
        self._pages.discard(page)

    async def run(self) -> None:
        """Tell until cancelled."""
        version, number = -1, self._fleet.decisions.number
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            fleet = self._fleet
            if fleet.version == version or not self._pages:
                number = fleet.decisions.number if not self._pages else number
                continue
            version = fleet.version
            events = [_event("overview", self._overview())]
            if fleet.decisions.number != number:
                changed = sorted(fleet.decisions.changed_since(number), key=lambda e: e.number)
                number = fleet.decisions.number
                documents = [entry.document() for entry in changed[-_MOST_DECISIONS:]]
                events.append(_event("decisions", documents))
            for page in list(self._pages):
                for event in events:
                    page.put(event)


def _event(name: str, document: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _encode(document) + b"\n\n"
