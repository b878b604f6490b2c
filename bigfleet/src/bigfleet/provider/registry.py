"""Several providers, by name.

The list of providers comes from flags or from the coordinator and may change while a shard runs;
`use` brings the clients in line with it and leaves those alone that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bigfleet.provider.client import ProviderClient, ProviderSite
from bigfleet.provider.errors import SiteError, UnknownProviderError


class Providers:
    """The providers of a shard. `connect` makes the client of a site."""

    def __init__(self, connect: Callable[[ProviderSite], ProviderClient]) -> None:
        self._connect = connect
        self._clients: dict[str, ProviderClient] = {}

    async def use(self, sites: Iterable[ProviderSite]) -> None:
        """These and no others: new ones are added, changed ones replaced, missing ones closed."""
        wanted: dict[str, ProviderSite] = {}
        for site in sites:
            if site.name in wanted:
                raise SiteError(f"provider {site.name!r} is listed twice: names must differ")
            wanted[site.name] = site
        old = {
            name: client
            for name, client in self._clients.items()
            if wanted.get(name) != client.site
        }
        kept = {name: client for name, client in self._clients.items() if name not in old}
        added = {name: self._connect(site) for name, site in wanted.items() if name not in kept}
        self._clients = dict(sorted({**kept, **added}.items()))
        for client in old.values():
            await client.close()

    async def close(self) -> None:
        """Hang up on all of them."""
        await self.use(())

    def __getitem__(self, name: str) -> ProviderClient:
        try:
            return self._clients[name]
        except KeyError:
            known = ", ".join(self._clients) or "none"
            raise UnknownProviderError(
                f"provider {name!r} is unknown: registered are {known}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._clients

    def __iter__(self) -> Iterator[ProviderClient]:
        return iter(self._clients.values())

    def __len__(self) -> int:
        return len(self._clients)
