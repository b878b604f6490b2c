"""What can stand in the way of a need, and the one table of what its removal means.

An unmet need is explained by one of these, or by two that only help together. The explanation is
exact: with the named ones removed the engine meets the need, with fewer of them removed it does
not. `bigfleet.explanation` finds them; the shard's answers, bigfleetctl and the dashboard use the
words below.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class BlockerKind(IntEnum):
    """What stands in the way; numbers as on the wire."""

    UNSPECIFIED = 0
    BOOTSTRAP = 1
    REQUIREMENT = 2
    SIZE = 3
    DIMENSION = 4
    INTERRUPTION = 5
    TOPOLOGY = 6
    STOCK_OUT = 7
    QUOTA = 8
    SPEND_LIMIT = 9
    PRIORITY = 10
    AMOUNT = 11
    TAINT = 12


REMOVAL: Final[Mapping[BlockerKind, str]] = MappingProxyType(
    {
        BlockerKind.BOOTSTRAP: "its cluster accepts machines: it is not without a session and not "
        "in bootstrap back-off",
        BlockerKind.REQUIREMENT: "the need does not have this requirement",
        BlockerKind.TAINT: "the need tolerates this taint",
        BlockerKind.SIZE: "its pieces may be of any size: the min unit is empty",
        BlockerKind.DIMENSION: "the need does not ask for this resource, neither in all nor in its "
        "pieces",
        BlockerKind.INTERRUPTION: "its interruption penalty is the largest one that is not pinned",
        BlockerKind.TOPOLOGY: "it has no Same requirement and no spread that must be kept",
        BlockerKind.STOCK_OUT: "no offering is out of stock",
        BlockerKind.QUOTA: "no quota slice limits the shard",
        BlockerKind.SPEND_LIMIT: "no spend limit is set",
        BlockerKind.PRIORITY: "the need has the highest priority there is, 2,147,483,647",
        BlockerKind.AMOUNT: "the need asks for no more than all machines that match hold together; "
        "where none matches, this removes nothing",
    }
)
"""What "removed" means. The decision with this change decides whether something is a blocker."""

BLOCKED_BY: Final[Mapping[BlockerKind, str]] = MappingProxyType(
    {
        BlockerKind.BOOTSTRAP: "its cluster accepts no machines at present: it has no session, or "
        "could not render bootstrap data",
        BlockerKind.REQUIREMENT: "its requirement {detail}",
        BlockerKind.TAINT: "machines that are tainted {detail}",
        BlockerKind.SIZE: "the size of its pieces ({detail}): no machine that matches is that "
        "large",
        BlockerKind.DIMENSION: "what it asks of {detail}",
        BlockerKind.INTERRUPTION: "its pinned interruption penalty: machines that match can be "
        "interrupted",
        BlockerKind.TOPOLOGY: "where its machines must be: {detail}",
        BlockerKind.STOCK_OUT: "a stock-out: {detail}",
        BlockerKind.QUOTA: "the shard's share of the provider's quota",
        BlockerKind.SPEND_LIMIT: "the spend limit",
        BlockerKind.PRIORITY: "its priority: the machines that match serve needs of equal or "
        "higher priority",
        BlockerKind.AMOUNT: "its amount: all machines that match hold {detail} together",
    }
)
"""A blocker in words; they follow "blocked by"."""

MORE_THAN_TWO: Final = (
    "more than two things: with any one or two of them gone, the need would still be unmet"
)
NOT_FOUND_IN_TIME: Final = "not found in the time there is"
