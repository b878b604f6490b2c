"""How tests are distributed among workers: a module stays together, and long tests begin first.

A fixture of a module may be a system of ten processes, so one worker runs all tests of a module.
Only a test that is itself marked `long` is a piece of its own; where `pytestmark` marks the whole
module, the module begins early and stays together. A group that a test names itself, with
`xdist_group`, is kept.

pytest-xdist hands pieces out in the order of the list, so the order matters too: a piece of a
minute that came last would be run while all other workers have finished. Long tests come first,
then the rungs that wait for processes, and the thousands of short ones fill the time at the end.
`tools/run_tests.py` gives pytest-xdist the arguments for this.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from xdist.scheduler import LoadScopeScheduling

_WAITING = ("queries", "crash", "integration", "dst")


class Mark(Protocol):
    """What is needed of a marker."""

    @property
    def name(self) -> str:
        """Its name."""


class Marked(Protocol):
    """What is needed of a test."""

    @property
    def own_markers(self) -> Sequence[Mark]:
        """The markers of the test itself, without those of its module."""

    def get_closest_marker(self, name: str) -> object:
        """The marker of the test or of its module, or None."""


Test = TypeVar("Test", bound=Marked)


def runs_alone(test: Marked) -> bool:
    """Whether a test is a piece of its own: it is long, and names no group."""
    is_long = any(mark.name == "long" for mark in test.own_markers)
    return is_long and test.get_closest_marker("xdist_group") is None


def in_order(tests: Sequence[Test]) -> list[Test]:
    """The same tests: long ones first, then those that wait, then the rest, each as they were."""

    def rank(test: Test) -> int:
        names = ("long", *_WAITING)
        return next(
            (n for n, name in enumerate(names) if test.get_closest_marker(name)), len(names)
        )

    return sorted(tests, key=rank)


class PieceScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole modules, and groups where a test names one."""

    def _split_scope(self, nodeid: str) -> str:
        """The piece that a test belongs to; xdist has put the name of a group behind its id."""
        path, _, name = nodeid.partition("::")
        group = name.rpartition("@")[2] if name.rfind("@") > name.rfind("]") else ""
        return f"@{group}" if group else path
