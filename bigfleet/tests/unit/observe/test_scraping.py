"""A page that is read in bites is the same page, and waits for cycles, but not for ever."""

import threading

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, generate_latest

from bigfleet.observe.scraping import BITE, PATIENCE_SECONDS, RightOfWay, Unhurried
from bigfleet.observe.shard import ShardMetrics


def registry() -> CollectorRegistry:
    return ShardMetrics(lambda: 0, version="1").registry


def ours(page: bytes) -> list[str]:
    """Without what changes from one reading to the next: processor time and collections."""
    return [line for line in page.decode().splitlines() if "bigfleet_" in line]


class Waiting(RightOfWay):
    """Counts, on a clock of its own, how long it was waited for."""

    def __init__(self, taken_for: float) -> None:
        super().__init__()
        self.taken_for, self.now = taken_for, 0.0

    def wait(self, seconds: float) -> None:
        self.now += min(seconds, self.taken_for)


def test_both_forms_say_what_the_registry_says() -> None:
    one = registry()
    for accepted in ("text/plain", "application/openmetrics-text; version=1.0.0"):
        encode, _ = choose_encoder(accepted)
        assert ours(encode(Unhurried(one, RightOfWay()))) == ours(encode(one))


def test_others_get_a_turn_after_every_bite() -> None:
    one, rests = registry(), list[float]()
    page = Unhurried(one, RightOfWay(), rests.append, lambda: 0.0)
    lines = generate_latest(page).decode().splitlines()
    samples = sum(not line.startswith("#") for line in lines)
    assert len(rests) == 1 + samples // BITE > 5


def test_a_page_begins_when_the_cycle_is_over() -> None:
    way, reading, texts = RightOfWay(), threading.Event(), list[bytes]()

    class Seen(RightOfWay):
        def wait(self, seconds: float) -> None:
            reading.set()
            way.wait(30.0)

    page = threading.Thread(
        target=lambda: texts.append(generate_latest(Unhurried(registry(), Seen())))
    )
    with way.taken():
        page.start()
        assert reading.wait(30.0)
        assert texts == []
    page.join(30.0)
    assert len(texts) == 1


def test_right_of_way_is_given_back_when_a_cycle_fails() -> None:
    way = RightOfWay()
    try:
        with way.taken():
            raise RuntimeError("a phase broke")
    except RuntimeError:
        waited = threading.Thread(target=way.wait, args=(30.0,))
        waited.start()
        waited.join(10.0)
        assert not waited.is_alive()


def test_a_page_waits_for_cycles_that_never_end_only_so_long() -> None:
    way = Waiting(taken_for=0.02)
    generate_latest(Unhurried(registry(), way, lambda _: None, lambda: way.now))
    assert way.now == pytest.approx(PATIENCE_SECONDS)


def test_a_page_that_is_late_makes_no_more_pauses() -> None:
    rests, now = list[float](), [0.0]

    def rest(seconds: float) -> None:
        rests.append(seconds)
        now[0] += 0.01

    generate_latest(Unhurried(registry(), RightOfWay(), rest, lambda: now[0]))
    assert len(rests) == 5
