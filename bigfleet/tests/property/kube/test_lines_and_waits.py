"""Lines whatever the pieces, waits whatever the chance, turns whatever the rate."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.kube import DecodeError
from bigfleet.kube.transport import RateLimit, lines_of
from bigfleet.wire.backoff import Backoff


@dataclass
class Pieces:
    """Bytes cut at given places."""

    data: bytes
    cuts: list[int]

    async def iter_any(self) -> AsyncIterator[bytes]:
        places = sorted({0, len(self.data), *(cut % (len(self.data) + 1) for cut in self.cuts)})
        for start, end in pairwise(places):
            yield self.data[start:end]


@dataclass
class Timeline:
    """Time that passes only by sleeping."""

    seconds: float = 0.0
    turns: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


async def collect(pieces: Pieces, longest: int = 1000) -> list[bytes]:
    return [line async for line in lines_of(pieces, longest)]


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 10_000)))
def test_lines_do_not_depend_on_how_they_arrive(texts: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join([*texts, b"an unfinished line"])
    whole = [line for line in data.split(b"\n")[:-1] if line]
    assert asyncio.run(collect(Pieces(data, cuts))) == whole


@given(st.integers(0, 5000))
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(cut: int) -> None:
    with pytest.raises(DecodeError, match="more than 1000 bytes"):
        asyncio.run(collect(Pieces(b"x" * 5000, [cut])))


@given(st.integers(), st.integers(1, 60), st.none() | st.floats(0, 100))
def test_waits_grow_to_the_limit_and_keep_what_was_asked(
    seed: int, tries: int, asked: float | None
) -> None:
    backoff = Backoff(first=0.5, longest=30, chance=Random(seed))
    for number in range(tries):
        ceiling = min(30, 0.5 * 2**number)
        wait = backoff.next(asked)
        assert wait >= max(ceiling / 2, asked or 0)
        assert wait <= max(ceiling, (asked or 0) * 1.25)
    backoff.reset()
    assert backoff.next() <= 0.5


@given(st.floats(0.5, 100), st.integers(1, 20), st.lists(st.floats(0, 3), max_size=60))
def test_no_window_of_time_holds_more_turns_than_burst_and_rate_allow(
    qps: float, burst: int, pauses: list[float]
) -> None:
    timeline = Timeline()
    rate = RateLimit(qps, burst, timeline)

    async def ask() -> None:
        for pause in pauses:
            timeline.seconds += pause
            await rate.turn()
            timeline.turns.append(timeline.seconds)

    asyncio.run(ask())
    for first, start in enumerate(timeline.turns):
        for last in range(first, len(timeline.turns)):
            window = timeline.turns[last] - start
            assert last - first + 1 <= burst + 1 + window * qps + 1e-6
