"""The warm-up reaches the engine, and decides the same every time."""

from __future__ import annotations

from bigfleet.engine_warm_up import warm_up


def test_the_warm_up_decides_something_and_always_the_same() -> None:
    assert warm_up() == warm_up() > 0
