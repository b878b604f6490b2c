"""The SDK of the example cloud: its HTTP API, one call per method call.

A real provider has the SDK of its cloud here. Whatever it is, its own retries are off, because the
kit retries and counts, and every call has limits of its own, so that a call always comes back.
"""

from collections.abc import Mapping
from typing import Any

import aiohttp

from bigfleet_provider_template.errors import CloudError

CONNECT_WITHIN, READ_WITHIN = 5.0, 30.0
Body = dict[str, Any]
Query = Mapping[str, str]


class CloudClient:
    """A connection to the cloud's API."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._session = aiohttp.ClientSession(
            endpoint,
            headers={"Authorization": f"Bearer {token}"},
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_WITHIN, sock_read=READ_WITHIN),
        )

    async def get(self, path: str, query: Query | None = None) -> Body:
        """Read."""
        return await self._call("GET", path, query)

    async def post(self, path: str, body: Body | None = None) -> Body:
        """Make or begin something."""
        return await self._call("POST", path, body=body)

    async def put(self, path: str, body: Body) -> Body:
        """Replace something."""
        return await self._call("PUT", path, body=body)

    async def upload(self, path: str, data: bytes, query: Query) -> Body:
        """Bytes as they are."""
        return await self._call("PUT", path, query, data=data)

    async def delete(self, path: str) -> Body:
        """Remove something."""
        return await self._call("DELETE", path)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Body | None = None,
        data: bytes | None = None,
    ) -> Body:
        try:
            async with self._session.request(
                method, path, params=query, json=body, data=data
            ) as answer:
                text = await answer.read()
                reply: Body = await answer.json() if text else {}
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise CloudError(503, "unreachable", f"{method} {path}: {error!r}") from error
        if answer.status >= 400:
            problem = reply.get("error", {})
            after = answer.headers.get("Retry-After")
            raise CloudError(
                answer.status,
                str(problem.get("code", answer.reason)),
                str(problem.get("message", "")),
                float(after) if after else None,
            )
        return reply
