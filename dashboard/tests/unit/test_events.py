"""News for open pages: at once, in order, and never more than a queue holds."""

import asyncio
import contextlib

import pytest

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.errors import UnavailableError
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.web import events
from bigfleet_dashboard.web.events import QUEUE, EventStreams, Page


async def read(page: Page, count: int) -> list[bytes]:
    stream = page.stream()
    async with asyncio.timeout(30):
        found = [await anext(stream) for _ in range(count)]
    with contextlib.suppress(Exception):
        await stream.aclose()  # type: ignore[attr-defined]
    return found


async def test_a_page_that_opens_is_told_at_once_how_things_are() -> None:
    news = EventStreams(Fleet(), lambda: {"version": 3})
    retry, first = await read(news.open(), 2)
    assert retry.startswith(b"retry:")
    assert first == b'event: overview\ndata: {"version":3}\n\n'


async def test_a_page_that_does_not_read_is_told_to_look_again_instead_of_being_waited_for() -> (
    None
):
    page = Page()
    for number in range(10 * QUEUE):
        page.put(b"event: %d\n\n" % number)
    _retry, first, *_ = await read(page, 3)
    assert first.startswith(b"event: reload")


async def test_decisions_are_told_as_they_happen() -> None:
    fleet = Fleet()
    news = EventStreams(fleet, dict)
    page = news.open()
    running = asyncio.create_task(news.run())
    await asyncio.sleep(0)
    fleet.decisions.take("s", pb.Decision(cycle=1, kind="Delete", machine_id="m-1"))
    fleet.changed()
    told = b"".join(await read(page, 4))
    running.cancel()
    assert b"event: decisions" in told
    assert b'"machine":"m-1"' in told


async def test_there_is_an_end_to_open_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_PAGES", 2)
    news = EventStreams(Fleet(), dict)
    pages = [news.open() for _ in range(2)]
    with pytest.raises(UnavailableError):
        news.open()
    news.close(pages[0])
    assert isinstance(news.open(), Page)
