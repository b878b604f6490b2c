"""A page gives way to cycles between its bites, but not forever."""

import threading

import pytest

from bigfleet.observe.pages import (
    BITE,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    CycleLock,
    MetricsPage,
    ScrapeThrottle,
)
from bigfleet.observe.shard import ShardMetrics


def page() -> MetricsPage:
    return MetricsPage(ShardMetrics(lambda: 0, version="1").registry)


def test_others_get_a_turn_after_every_bite() -> None:
    turns = list[int]()
    text, _ = page().write("", lambda: turns.append(1))
    lines = text.count(b"\n")
    # A series is never cut, so that a bite may be longer than it should be.
    assert lines // (2 * BITE) < len(turns) <= 1 + lines // BITE


def test_a_page_begins_when_the_cycle_is_over() -> None:
    way, reading, texts = CycleLock(), threading.Event(), list[bytes]()

    def give_way() -> None:
        reading.set()
        way.wait(30.0)

    reader = threading.Thread(target=lambda: texts.append(page().write("", give_way)[0]))
    with way.taken():
        reader.start()
        assert reading.wait(30.0)
        assert texts == []
    reader.join(30.0)
    assert len(texts) == 1


def test_right_of_way_is_given_back_when_a_cycle_fails() -> None:
    way = CycleLock()
    with pytest.raises(RuntimeError), way.taken():
        raise RuntimeError("a phase broke")
    waiting = threading.Thread(target=way.wait, args=(60.0,))
    waiting.start()
    waiting.join(30.0)
    assert not waiting.is_alive()


class Watched(CycleLock):
    """Taken for so long whenever it is asked, on a clock of its own."""

    def __init__(self, taken_for: float) -> None:
        super().__init__()
        self.taken_for, self.now, self.rests = taken_for, 0.0, 0

    def wait(self, seconds: float) -> None:
        self.now += min(seconds, self.taken_for)

    def rest(self, seconds: float) -> None:
        self.now += seconds
        self.rests += 1


def test_cycles_that_never_end_are_waited_for_only_so_long() -> None:
    way = Watched(taken_for=0.02)
    courtesy = ScrapeThrottle(way, way.rest, lambda: way.now)
    for _ in range(100):
        courtesy()
    assert way.now == pytest.approx(PATIENCE_SECONDS)
    assert way.rests == 3


def test_a_page_that_is_late_makes_no_more_pauses() -> None:
    way = Watched(taken_for=0.0)
    courtesy = ScrapeThrottle(way, way.rest, lambda: way.now)
    for _ in range(1_000):
        courtesy()
    assert way.rests == pytest.approx(PATIENCE_SECONDS / PAUSE_SECONDS, abs=1)
