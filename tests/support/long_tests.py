"""The order of tests on several workers: long ones begin first, each on a worker of its own.

pytest-xdist gives every worker a stretch of the list and lets those that are done take from the
others. A test of a minute that came last would be run while everyone else has finished.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Marked(Protocol):
    """What is needed of a test."""

    def get_closest_marker(self, name: str) -> object:
        """The marker, or None."""


Test = TypeVar("Test", bound=Marked)


def spread_long_tests(tests: Sequence[Test], workers: int) -> list[Test]:
    """The same tests, those marked `long` at the beginnings of the workers' stretches."""
    long = [test for test in tests if test.get_closest_marker("long")]
    others = [test for test in tests if not test.get_closest_marker("long")]
    if not long or workers < 2:
        return list(tests)
    stretch = -(-len(tests) // workers)
    order: list[Test] = []
    for worker in range(workers):
        first = long[worker::workers]
        rest = max(0, stretch - len(first))
        order += first + others[:rest]
        others = others[rest:]
    return order + others
