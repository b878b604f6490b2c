"""Cycle times and metrics of shards, from the HTTP pages every shard serves.

Where a page is not known it is guessed from the address: the port plus 1000, as the default ports
are apart. Without it everything else still works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import aiohttp

from bigfleet_base.addresses import HIGHEST_PORT, Endpoint, can_dial
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.pages import read_scrape
from bigfleet_dashboard.state.shards import ShardState
from bigfleet_dashboard.state.source_health import FAILING, OK, WAITING

EVERY_SECONDS: Final = 3.0
APART: Final = 1000
_SECONDS: Final = 3.0
_AT_ONCE: Final = 8
_MOST_BYTES: Final = 32 * 1024 * 1024


class PageReader:
    """Reads the pages of all shards."""

    def __init__(
        self, fleet: Fleet, session: aiohttp.ClientSession, known: Mapping[str, str]
    ) -> None:
        self._fleet, self._session, self._known = fleet, session, known
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.gather(*(self._read(s) for s in list(self._fleet.shards.values())))
            self._tell()
            await asyncio.sleep(EVERY_SECONDS)

    async def _read(self, shard: ShardState) -> None:
        shard.http_address = self._known.get(shard.shard_id) or guessed(shard.address)
        if not shard.http_address:
            shard.http_trouble = "its address is not known"
            return
        last = shard.cycles.last
        since = last.cycle + 1 if last else 0
        if shard.status is not None and last is not None and shard.status.cycle < last.cycle:
            since = 0
        try:
            async with self._gate:
                cycles = await self._get(f"http://{shard.http_address}/debug/cycles?since={since}")
                scrape = await self._get(f"http://{shard.http_address}/metrics")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            shard.http_trouble = str(error) or type(error).__name__
            return
        shard.cycles.take(cycles)
        shard.scrape = read_scrape(scrape, self._fleet.clock())
        shard.http_trouble = ""
        self._fleet.changed()

    async def _get(self, url: str) -> str:
        limit = aiohttp.ClientTimeout(total=_SECONDS)
        async with self._session.get(url, timeout=limit) as answer:
            if answer.status != 200:
                raise ValueError(f"{url} answers {answer.status}")
            body = b""
            async for piece in answer.content.iter_chunked(64 * 1024):
                body += piece
                if len(body) > _MOST_BYTES:
                    raise ValueError(f"{url} answers more than {_MOST_BYTES} bytes")
            return body.decode("utf-8", "replace")

    def _tell(self) -> None:
        shards = self._fleet.shards.values()
        failing = [shard for shard in shards if shard.http_trouble]
        if not self._fleet.shards:
            outcome = (WAITING, "no shard is known yet", "")
        elif failing:
            outcome = (
                FAILING,
                f"{len(failing)} of {len(self._fleet.shards)} not readable, first "
                f"{failing[0].shard_id} at {failing[0].http_address}: {failing[0].http_trouble}",
                "name the page with --shard-http ID=HOST:PORT (the shard's --metrics-addr)",
            )
        else:
            outcome = (OK, f"cycle times and metrics of {len(self._fleet.shards)}", "")
        if self._fleet.sources.tell("shard pages", *outcome):
            self._fleet.changed()


def guessed(address: str) -> str:
    """The page of a shard that listens at an address."""
    if not can_dial(address):
        return ""
    grpc = Endpoint.parse(address)
    page = Endpoint(grpc.host, grpc.port + APART)
    return str(page) if page.port <= HIGHEST_PORT else ""
