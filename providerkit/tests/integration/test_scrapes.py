"""Probes and metrics of a provider are served by threads of their own."""

import urllib.request

from bigfleet_base.http import HttpServer, page_routes
from bigfleet_providerkit.http.metrics import Metrics


async def test_a_scrape_is_answered_while_the_event_loop_stands_still() -> None:
    metrics = Metrics()
    metrics.panics.inc()
    server = HttpServer("127.0.0.1:0", page_routes(metrics.page, lambda: ""))
    try:
        # Reading here holds the event loop: an answer that needed it would never come.
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=30) as answer:  # noqa: ASYNC210
            assert b"bigfleet_provider_panics_total 1.0" in answer.read()
    finally:
        server.close()
