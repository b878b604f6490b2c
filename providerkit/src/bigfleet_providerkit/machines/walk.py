"""Cursors of List, and the order in which a capped List without a cursor goes through machines.

Two kinds of cursor, both opaque to readers:

    v1.<store>.<revision>                 everything up to this revision was seen
    w1.<store>.<start>.<last>.<head>      inside a walk

A *walk* begins where a List has a cap, no cursor, and more machines than the cap. It goes through
machines in the order of their last change, from just after revision `start` to `head`, and then
from the beginning up to `start`. Each walk begins at another machine, so that several shards that
look for a free slot do not all find the same one. A machine that changes during the walk moves
beyond `head` and leaves it; the last page carries `head` as an ordinary cursor, so the next List
is the exact delta since the walk began. Nothing about a walk is kept between its pages.
"""

import re
from dataclasses import dataclass

_NUMBER = rb"(0|[1-9][0-9]{0,18})"
_SINCE = re.compile(rb"v1\.([a-z2-7]{10})\." + _NUMBER)
_WALK = re.compile(rb"w1\.([a-z2-7]{10})\." + rb"\.".join([_NUMBER] * 3))
STRIDE = 0.6180339887498949
"""The golden ratio: successive starts are as far from all earlier ones as they can be."""


@dataclass(frozen=True, slots=True)
class Since:
    """Everything up to `revision` was seen; -1 is before everything."""

    revision: int


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk that began after revision `start`, has reached `last`, and ends at `head`."""

    start: int
    last: int
    head: int

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What is left: ranges of revisions, each without its lower end and with its upper one."""
        if self.last >= self.start:
            return ((self.last, self.head), (0, self.start))
        return ((self.last, self.start),)


def read_cursor(cursor: bytes, store: str, head: int) -> Since | Walk:
    """What a cursor says; one that is of no use here means that nothing was seen."""
    if match := _SINCE.fullmatch(cursor):
        revision = int(match.group(2))
        if match.group(1).decode() == store and revision <= head:
            return Since(revision)
    elif match := _WALK.fullmatch(cursor):
        start, last, end = (int(number) for number in match.groups()[1:])
        if match.group(1).decode() == store and max(start, last) <= end <= head:
            return Walk(start, last, end)
    return Since(-1)


def since_cursor(store: str, revision: int) -> bytes:
    """The cursor of a reader that has seen everything up to a revision."""
    return f"v1.{store}.{revision}".encode()


def walk_cursor(store: str, walk: Walk) -> bytes:
    """The cursor between two pages of a walk."""
    return f"w1.{store}.{walk.start}.{walk.last}.{walk.head}".encode()


def first_of(walks: int, machines: int) -> int:
    """At which of so many machines the next walk begins, when so many walks have begun before."""
    return int(walks * STRIDE % 1.0 * machines) % machines
