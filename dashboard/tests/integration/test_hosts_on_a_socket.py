"""Host names as a browser sends them: through the real server, byte by byte."""

import asyncio
from urllib.parse import urlsplit

import pytest

from standing import a_page_over
from worlds_of_machines import fleet_of, machine


async def answer_to(url: str, request: str) -> str:
    """What the server sends until it closes or the first event begins."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    try:
        writer.write(request.replace("\n", "\r\n").encode())
        answer = b""
        while b"event: " not in answer and (piece := await reader.read(65_536)):
            answer += piece
        return answer.decode()
    finally:
        writer.close()


@pytest.mark.parametrize("path", ["/api/v1/overview", "/api/v1/events", "/api/v1/machines"])
@pytest.mark.parametrize(
    ("version", "hosts"),
    [
        ("1.1", ("evil.example",)),
        ("1.1", ("localhost", "evil.example")),
        ("1.1", ("evil.example", "localhost")),
        ("1.1", ("",)),
        ("1.0", ()),
        ("1.0", ("evil.example",)),
    ],
)
async def test_a_foreign_name_gets_no_data(path: str, version: str, hosts: tuple[str, ...]) -> None:
    lines = "".join(f"Host: {host}\n" for host in hosts)
    async with asyncio.timeout(20), a_page_over(fleet_of([machine("m-secret")])) as (url, _):
        request = f"GET {path} HTTP/{version}\n{lines}Connection: close\n\n"
        answer = await answer_to(url, request)
    assert answer.split(" ", 2)[1] in ("400", "421")
    assert "m-secret" not in answer


async def test_events_go_to_a_page_that_names_this_machine() -> None:
    async with asyncio.timeout(20), a_page_over(fleet_of([machine("m-1")])) as (url, _):
        port = urlsplit(url).port
        request = f"GET /api/v1/events HTTP/1.1\nHost: localhost:{port}\n\n"
        answer = await answer_to(url, request)
    assert answer.startswith("HTTP/1.1 200")
