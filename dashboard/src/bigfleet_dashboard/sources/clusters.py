"""Clusters' own objects: UpcomingNodes by phase, from each API server that is named.

Optional, and for clusters a dashboard may reach. Without it the page shows what the shards know.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp

from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.source_health import FAILING, OFF, OK

EVERY_SECONDS: Final = 15.0
_SECONDS: Final = 5.0
_PATH: Final = "/apis/bigfleet.lucy.sh/v1alpha1/upcomingnodes"
HOW: Final = (
    "start the dashboard with --cluster-api NAME=URL (an API server, or `kubectl proxy`), and "
    "--cluster-token-file where it asks for one"
)


class ClusterObjects:
    """Reads every named cluster."""

    def __init__(
        self,
        fleet: Fleet,
        session: aiohttp.ClientSession,
        clusters: Sequence[tuple[str, str]],
        token_file: Path | None,
    ) -> None:
        self._fleet, self._session = fleet, session
        self._clusters, self._token_file = clusters, token_file

    async def run(self) -> None:
        """Until cancelled; says once that it is not configured."""
        if not self._clusters:
            self._fleet.sources.tell("cluster objects", OFF, "not configured", HOW)
            return
        while True:
            failed = [
                text for text in await asyncio.gather(*map(self._read, self._clusters)) if text
            ]
            outcome = (
                (FAILING, failed[0], "check the address, the token and its rights")
                if failed
                else (OK, f"UpcomingNodes of {len(self._clusters)} clusters", "")
            )
            self._fleet.sources.tell("cluster objects", *outcome)
            self._fleet.changed()
            await asyncio.sleep(EVERY_SECONDS)

    async def _read(self, cluster: tuple[str, str]) -> str:
        name, address = cluster
        url = address.rstrip("/") + _PATH
        try:
            headers = {}
            if self._token_file is not None:
                token = await asyncio.to_thread(self._token_file.read_text, "utf-8")
                headers["Authorization"] = f"Bearer {token.strip()}"
            limit = aiohttp.ClientTimeout(total=_SECONDS)
            async with self._session.get(url, headers=headers, timeout=limit) as answer:
                if answer.status != 200:
                    return f"{name}: {url} answers {answer.status}"
                document: Any = await answer.json(content_type=None)
            phases = Counter(
                str(item.get("status", {}).get("phase", "Unknown")) for item in document["items"]
            )
        # Whatever stands at that address may answer with anything.
        except (
            OSError, aiohttp.ClientError, ValueError, LookupError, TypeError, AttributeError,
        ) as error:  # fmt: skip
            return f"{name}: {error!r}"
        self._fleet.upcoming[name] = dict(phases)
        return ""
