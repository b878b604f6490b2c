"""What a provider of an account or project reads besides its hosts: listings of numbered pages, and
things that orders name (images, networks, keys).

A thing is looked for once and remembered, because each look is one of the calls of a quota, and
many orders begin at once. One that is not there is an `InvalidRequest` and is looked for again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any

from bigfleet_providerkit.errors import InvalidRequest


async def numbered_pages(
    page: Callable[[int], Awaitable[tuple[Iterable[Any], int | None]]],
) -> list[Any]:
    """The rows of all pages, or an error. `page` gives rows and the number of the next page."""
    rows: list[Any] = []
    number: int | None = 1
    while number:
        found, number = await page(number)
        rows += found
    return rows


class LookupCache:
    """Things by a key of the provider, each looked for once."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._looking = asyncio.Lock()

    async def get(self, key: Hashable, look: Callable[[], Awaitable[Any]], missing: str) -> Any:
        """What `look` found the first time; `missing` is the sentence when it finds None."""
        async with self._looking:
            if key not in self._found:
                found = await look()
                if found is None:
                    raise InvalidRequest(missing)
                self._found[key] = found
            return self._found[key]
