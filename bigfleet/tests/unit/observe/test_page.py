"""The page of /metrics is, line by line, the one that the library would write."""

from random import Random

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import choose_encoder

from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.pages import MetricsPage, Registry
from bigfleet.observe.podcontroller import PodControllerMetrics
from bigfleet.observe.shard import ShardMetrics

FORMS = (
    "",
    "text/plain; version=0.0.4",
    "text/plain; version=1.0.0; escaping=allow-utf-8",
    "application/openmetrics-text; version=1.0.0; escaping=allow-utf-8",
    "application/openmetrics-text",
)


def lively() -> ShardMetrics:
    """A shard's metrics after some life."""
    made, chance = ShardMetrics(lambda: 0, version='1 "\\ \n'), Random(1)
    for _ in range(50):
        seconds = chance.expovariate(50.0)
        made.cycle(seconds, {"phase1": seconds / 2}, "tick", {"need_added": 1_000_000}, 10**18)
        made.provider_call("cloud", "Create", "OK", chance.expovariate(1.0))
    return made


REGISTRIES = {
    "shard": lambda: lively().registry,
    "coordinator": lambda: CoordinatorMetrics(lambda: 0, version="1").registry,
    "operator": lambda: OperatorMetrics(lambda: 0.0, version="1").registry,
    "pod controller": lambda: PodControllerMetrics(version="1").registry,
}


def lines(page: bytes) -> list[str]:
    """Without what changes from one reading to the next: processor time and collections."""
    passing = ("process_", "python_gc_")
    return [line for line in page.decode().splitlines() if not line.startswith(passing)]


@pytest.mark.parametrize("accepted", FORMS)
@pytest.mark.parametrize("name", REGISTRIES)
def test_it_says_what_the_library_says(name: str, accepted: str) -> None:
    registry = REGISTRIES[name]()
    page, (encode, kind) = MetricsPage(registry), choose_encoder(accepted)
    for _ in range(2):
        text, told = page.write(accepted, lambda: None)
        assert lines(text) == lines(encode(registry))
        assert told == kind


def test_labels_keep_their_line() -> None:
    registry = CollectorRegistry()
    seen = Counter("seen_total", 'of "it"\n', ("what",), registry=registry)
    seen.labels('a "\\\n').inc()
    for accepted in FORMS:
        text, _ = MetricsPage(registry).write(accepted, lambda: None)
        assert text == choose_encoder(accepted)[0](registry)


def test_what_was_unregistered_is_not_shown() -> None:
    registry = Registry()
    gauge = Gauge("here", "For a while.", registry=registry)
    page = MetricsPage(registry)
    assert b"\nhere 0.0\n" in page.write("", lambda: None)[0]
    registry.unregister(gauge)
    assert page.write("", lambda: None)[0] == b""
