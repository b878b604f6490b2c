"""What clients cannot do to the page's server, whatever they send or do not send."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from bigfleet_base.http import HttpLimits
from standing import a_page_over
from worlds_of_machines import fleet_of, machine

IMPATIENT = HttpLimits(request=0.3, write=0.3)
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def connected(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What the server sent until it ended the connection, in order or with a reset."""
    parts = []
    try:
        while part := await reader.read(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


async def healthy(url: str) -> bool:
    async with connected(url) as (reader, writer):
        writer.write(GET)
        return (await ended(reader)).startswith(b"HTTP/1.1 200")


async def test_the_page_answers_beside_a_thousand_idle_connections() -> None:
    limits = HttpLimits(connections=200)
    async with AsyncExitStack() as stack, asyncio.timeout(60):
        url, _ = await stack.enter_async_context(a_page_over(fleet_of([machine("m-1")]), limits))
        for _ in range(1000):
            await stack.enter_async_context(connected(url))
        begun = time.monotonic()
        assert await healthy(url)
        assert time.monotonic() - begun < 1.0


async def test_a_page_that_listens_for_events_is_not_closed_for_idle_connections() -> None:
    limits = HttpLimits(connections=5, request=0.3)
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        url, _ = await stack.enter_async_context(a_page_over(fleet_of([machine("m-1")]), limits))
        reader, writer = await stack.enter_async_context(connected(url))
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" in await reader.readline()
        for _ in range(20):
            idle, _ = await stack.enter_async_context(connected(url))
        assert await ended(idle) == b""
        while b"still here" not in (line := await reader.readline()):
            assert line


async def test_a_connection_that_sends_nothing_or_half_a_request_is_closed() -> None:
    async with asyncio.timeout(20), a_page_over(fleet_of([]), IMPATIENT) as (url, _):
        for said in (b"", b"GET /healthz HTTP/1.1\r\n", GET.replace(b"close", b"keep-alive")):
            async with connected(url) as (reader, writer):
                writer.write(said)
                answer = await ended(reader)
                assert answer.startswith(b"HTTP/1.1 200") is said.endswith(b"\r\n\r\n")
        assert await healthy(url)


async def test_half_a_second_request_is_not_waited_for() -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        url, _ = await stack.enter_async_context(a_page_over(fleet_of([]), IMPATIENT))
        reader, writer = await stack.enter_async_context(connected(url))
        writer.write(GET.replace(b"close", b"keep-alive") + b"GET /healthz HT")
        assert (await ended(reader)).count(b"HTTP/1.1 200") == 1
