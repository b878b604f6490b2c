"""Probes and metrics of a provider are served by threads of their own."""

import urllib.request

from prometheus_client import CollectorRegistry, Counter

from bigfleet_providerkit.http.server import HttpServer


async def test_a_scrape_is_answered_while_the_event_loop_stands_still() -> None:
    registry = CollectorRegistry()
    Counter("seen_total", "seen", registry=registry).inc()
    server = HttpServer("127.0.0.1:0", registry, lambda: "")
    try:
        # Reading here holds the event loop: an answer that needed it would never come.
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=30) as answer:  # noqa: ASYNC210
            assert b"seen_total 1.0" in answer.read()
    finally:
        server.close()
