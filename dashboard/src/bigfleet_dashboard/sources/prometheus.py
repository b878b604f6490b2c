"""What only Prometheus knows: how long ago each operator's last roll-up was acknowledged.

Optional. Without it a cluster's lag is the oldest of its shard.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp

from bigfleet_dashboard.errors import SourceError
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.source_health import FAILING, OFF, OK

EVERY_SECONDS: Final = 10.0
_SECONDS: Final = 5.0
HOW: Final = "start the dashboard with --prometheus http://HOST:9090"
ROLLUP_AGE: Final = "max by (cluster) (bigfleet_operator_rollup_age_seconds)"


class Prometheus:
    """Instant queries."""

    def __init__(self, fleet: Fleet, session: aiohttp.ClientSession, address: str) -> None:
        self._fleet, self._session, self._address = fleet, session, address.rstrip("/")

    async def run(self) -> None:
        """Until cancelled; says once that it is not configured."""
        if not self._address:
            self._fleet.sources.tell("prometheus", OFF, "not configured", HOW)
            return
        while True:
            try:
                self._fleet.rollup_ages = await self.by_label(ROLLUP_AGE, "cluster")
                outcome = (
                    OK,
                    f"acknowledgement lag of {len(self._fleet.rollup_ages)} clusters",
                    "",
                )
            except SourceError as error:
                outcome = (FAILING, str(error), f"check {self._address}, or leave --prometheus out")
            if self._fleet.sources.tell("prometheus", *outcome):
                self._fleet.changed()
            await asyncio.sleep(EVERY_SECONDS)

    async def by_label(self, query: str, label: str) -> dict[str, float]:
        """The value of every series of an instant query, by one of its labels."""
        url = f"{self._address}/api/v1/query"
        limit = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with self._session.get(url, params={"query": query}, timeout=limit) as answer:
                document: Any = await answer.json(content_type=None)
            if document["status"] != "success":
                raise SourceError(f"{query}: {document.get('error', 'no reason given')}")
            return {
                str(series["metric"].get(label, "")): float(series["value"][1])
                for series in document["data"]["result"]
            }
        # Whatever stands at that address may answer with anything.
        except (
            OSError, aiohttp.ClientError, ValueError, LookupError, TypeError, AttributeError,
        ) as error:  # fmt: skip
            raise SourceError(f"{url}: {error!r}") from error
