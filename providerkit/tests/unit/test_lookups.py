"""Listings of numbered pages, and things that are looked for once."""

import asyncio

import pytest

from bigfleet_providerkit import InvalidRequest
from bigfleet_providerkit.calls.lookups import LookupCache, numbered_pages

PAGES = {1: ("ab", 2), 2: ("", 3), 3: ("c", None)}


async def test_all_pages_are_read_in_order() -> None:
    async def page(number: int) -> tuple[str, int | None]:
        return PAGES[number]

    assert await numbered_pages(page) == ["a", "b", "c"]


async def test_many_who_ask_for_a_thing_at_once_share_one_look() -> None:
    looks = 0

    async def look() -> str:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return "image"

    known = LookupCache()
    found = await asyncio.gather(*(known.get("image", look, "no image") for _ in range(20)))
    assert (set(found), looks) == ({"image"}, 1)


async def test_a_thing_that_is_not_there_is_named_and_looked_for_again() -> None:
    shown: list[str | None] = [None, "network"]

    async def look() -> str | None:
        return shown.pop(0)

    known = LookupCache()
    with pytest.raises(InvalidRequest, match="there is no network 'a'"):
        await known.get(("network", "a"), look, "there is no network 'a'")
    assert await known.get(("network", "a"), look, "") == "network"
