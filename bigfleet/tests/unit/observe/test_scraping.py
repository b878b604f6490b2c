"""A page that is read in bites is the same page."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest

from bigfleet.observe.scraping import BITE, Unhurried
from bigfleet.observe.shard import ShardMetrics


def registry() -> CollectorRegistry:
    return ShardMetrics(lambda: 0, version="1").registry


def ours(page: bytes) -> list[str]:
    """Without what changes from one reading to the next: processor time and collections."""
    return [line for line in page.decode().splitlines() if "bigfleet_" in line]


def test_both_forms_say_what_the_registry_says() -> None:
    one = registry()
    for accepted in ("text/plain", "application/openmetrics-text; version=1.0.0"):
        encode, _ = choose_encoder(accepted)
        assert ours(encode(Unhurried(one))) == ours(encode(one))


def test_others_get_a_turn_after_every_bite() -> None:
    one, rests = registry(), list[float]()
    lines = generate_latest(Unhurried(one, rests.append)).decode().splitlines()
    samples = sum(not line.startswith("#") for line in lines)
    assert len(rests) == samples // BITE > 5
