"""Routes for what a cloud pushes: only with the token, one JSON object in, one out."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping

import pytest

from bigfleet_base.http import HttpServer
from bigfleet_providerkit.http.posts import post_route
from kitworld import world


async def post(address: str, body: bytes, token: str) -> tuple[int, object]:
    def send() -> tuple[int, object]:
        request = urllib.request.Request(
            f"http://{address}/internal/eviction", body, {"Authorization": f"Bearer {token}"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return await asyncio.to_thread(send)


@pytest.mark.parametrize(
    ("body", "token", "expected"),
    [
        (b'{"machine_id": "m"}', "right", (200, {"seen": "m"})),
        (b'{"machine_id": "m"}', "wrong", (401, {"error": "give the bearer token of this route"})),
        (b"[]", "right", (400, {"error": "send one JSON object"})),
        (b"{}", "right", (400, {"error": "name a machine"})),
    ],
)
async def test_a_push_is_taken_with_the_token_only(
    body: bytes, token: str, expected: tuple[int, object]
) -> None:
    async def evict(event: Mapping[str, object]) -> Mapping[str, object]:
        if "machine_id" not in event:
            raise ValueError("name a machine")
        return {"seen": event["machine_id"]}

    server = HttpServer("127.0.0.1:0", {"/internal/eviction": post_route("right", evict)})
    try:
        assert await post(server.address, body, token) == expected
    finally:
        await asyncio.to_thread(server.close)


async def test_without_a_token_there_is_no_route() -> None:
    async def never(event: Mapping[str, object]) -> Mapping[str, object]:
        raise AssertionError

    async with world() as w:
        kit = w.running.backend.kit
        kit.http_post("/internal/eviction", "", never)
        assert kit.posts == {}
        kit.http_post("/internal/eviction", "t", never)
        assert list(kit.posts) == ["/internal/eviction"]
