"""Pages over real sockets."""

import asyncio
import json
import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from bigfleet.observe.cycles import CycleRecord, CycleRing
from bigfleet.observe.pages import component_routes, debug_routes, serve_pages
from bigfleet.observe.shard import ShardMetrics
from bigfleet_base.http import HttpError, Request, Response


class Site:
    """A shard's pages."""

    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.reason = ""
        self.metrics = ShardMetrics(lambda: 0, version="1")
        self.ring = CycleRing()
        routes = component_routes(self.metrics.registry, lambda: self.reason)
        server = serve_pages(address, routes | debug_routes(self.ring))
        assert server is not None
        self.server = server

    def get(self, path: str, accept: str = "") -> tuple[int, str, str]:
        request = urllib.request.Request(
            f"http://{self.server.address}{path}", headers={"Accept": accept}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.close()


def test_metrics_come_as_text_and_as_openmetrics(site: Site) -> None:
    status, kind, body = site.get("/metrics")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert 'bigfleet_shard_actions_total{kind="Preempt"} 0.0' in body
    assert "_created" not in body
    status, kind, body = site.get("/metrics", "application/openmetrics-text; version=1.0.0")
    assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
    assert body.endswith("# EOF\n")


async def test_a_scrape_is_answered_while_the_event_loop_stands_still(site: Site) -> None:
    # Reading inside a coroutine holds the loop: an answer that needed it would never come.
    for path in ("/metrics", "/healthz", "/readyz", "/debug/stacks"):
        assert site.get(path)[0] == 200


def test_serving_is_said_with_the_address(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        made = Site()
        made.server.close()
    (record,) = (r for r in caplog.records if r.message == "metrics serving")
    assert record.__dict__["addr"] == made.server.address


def test_alive_is_not_ready(site: Site) -> None:
    site.reason = "waiting for the first List\nof provider aws"
    assert site.get("/healthz")[::2] == (200, "ok\n")
    assert site.get("/readyz")[::2] == (503, "waiting for the first List of provider aws\n")
    site.reason = ""
    assert site.get("/readyz")[::2] == (200, "ok\n")


def test_cycles_come_as_lines(site: Site) -> None:
    for number in (1, 2, 3):
        site.ring.add(CycleRecord(number, 0, "tick", 1, 1, {}, 0, 0, 0, {}, 0))
    status, kind, body = site.get("/debug/cycles?since=2")
    assert (status, kind) == (200, "application/x-ndjson")
    assert [json.loads(line)["cycle"] for line in body.splitlines()] == [2, 3]
    assert len(site.get("/debug/cycles")[2].splitlines()) == 3
    assert site.get("/debug/cycles?since=abc")[0] == 400


async def test_stacks_show_threads_and_tasks() -> None:
    routes = debug_routes(CycleRing(), asyncio.get_running_loop())

    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(waits_for_nothing(), name="a-task")
    await asyncio.sleep(0)
    response = routes["/debug/stacks"].handler(Request("GET", "/debug/stacks"))
    assert isinstance(response, Response)
    text = response.body.decode()
    task.cancel()
    assert "thread MainThread" in text
    assert "task a-task" in text
    assert "waits_for_nothing" in text


def test_an_unknown_page_names_those_there_are(site: Site) -> None:
    status, _, body = site.get("/nothing")
    assert status == 404
    assert "/metrics" in body
    assert "/debug/cycles" in body


def test_a_taken_port_is_named_with_its_flag(site: Site) -> None:
    with pytest.raises(HttpError) as refused:
        Site(site.server.address)
    assert site.server.address in str(refused.value)
    assert "--metrics-addr" in str(refused.value)


def test_zero_or_nothing_switches_http_off() -> None:
    routes = component_routes(ShardMetrics(lambda: 0, version="1").registry, str)
    assert serve_pages("0", routes) is None
    assert serve_pages("", routes) is None


@pytest.mark.parametrize("address", ["8780", "host:port", ":99999"])
def test_a_wrong_address_is_named(address: str) -> None:
    with pytest.raises(HttpError, match="is not an address"):
        Site(address)


def test_a_port_without_a_host_is_open_to_ipv4(site: Site) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    wide = Site(f":{port}")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.status == 200
    finally:
        wide.server.close()
