"""The calls of AWS, by the names that they have in its reference and in policies.

Every call goes through the kit, which limits, counts, classifies and retries it. The SDK is
imported when an `Api` is made, so that --use-fake-backend does without.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bigfleet_provider_aws.errors import SERVICE_OF
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_providerkit.kit import Kit

MOST_FILTER_VALUES = 200
Filters = Mapping[str, Sequence[str]]


class Api:
    """One region of one account, with the kit and the options of the provider that works there.
    Clients are made when they are first used; threads share them."""

    def __init__(self, kit: Kit, options: AwsOptions) -> None:
        from bigfleet_provider_aws import sessions

        self.kit = kit
        self.options = options
        self._sessions = sessions
        self._lock = threading.Lock()
        self.renew()

    async def call(self, op: str, **params: Any) -> dict[str, Any]:
        """One call and its answer."""
        return await self.kit.call(op, self._send, op, params)

    async def rows(
        self, op: str, key: str, filters: Filters, **params: Any
    ) -> list[Mapping[str, Any]]:
        """What `key` holds in all pages of a call, or an error."""
        rows = list[Mapping[str, Any]]()
        for part in _parts(filters):
            answer = await self.call(op, Filters=part, **params)
            rows += answer[key]
            while token := answer.get("NextToken"):
                answer = await self.call(op, Filters=part, **params, NextToken=token)
                rows += answer[key]
        return rows

    def renew(self) -> None:
        """Find credentials again, from the start of the chain: a file or a role may have others."""
        session = self._sessions.open_session(self.options)
        with self._lock:
            self._session = session
            self._clients = dict[str, Any]()

    def close(self) -> None:
        """Let go of the connections."""
        for client in self._clients.values():
            client.close()

    def _send(self, op: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._sessions.send(self._client(SERVICE_OF.get(op, "ec2")), op, params)

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                made = self._sessions.open_client(self._session, service, self.options)
                self._clients[service] = made
            return self._clients[service]


def _parts(filters: Filters) -> Iterator[list[dict[str, object]]]:
    """Filters as EC2 takes them; what one call does not take makes further calls."""
    longest = max(len(values) for values in filters.values())
    for at in range(0, longest, MOST_FILTER_VALUES):
        yield [
            {"Name": name, "Values": list(values[at : at + MOST_FILTER_VALUES] or values)}
            for name, values in filters.items()
        ]
