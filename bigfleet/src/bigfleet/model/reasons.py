"""Why a need stays unmet: the reasons, and the one table of their words.

The shard's verdicts, bigfleetctl, the dashboard, `bigfleet plan` and the Events on Pods all read
this table, so that a person meets one wording for one thing. Words give counts and priorities of
others, never names of their clusters. What a change would do is not here: that is tried for the
need in question (`bigfleet.explanation`), and never guessed from the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Reason(IntEnum):
    """Why a need stays unmet; numbers as on the wire (UnmetReason)."""

    NONE = 0
    PRIORITY_STARVED = 1
    NO_MATCHING_SUPPLY = 2
    TOPOLOGY_UNSATISFIABLE = 3
    PREEMPTION_EXHAUSTED = 4
    QUOTA = 100
    SPEND_LIMIT = 101
    STOCK_OUT = 102
    BOOTSTRAP_ERROR = 103
    PAUSED = 104
    FROZEN = 105

    @property
    def title(self) -> str:
        """As in conditions and Events: `PriorityStarved`."""
        return self.name.title().replace("_", "")


WHY: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.NONE: "met",
        Reason.PRIORITY_STARVED: "the machines that fit serve needs of equal or higher priority",
        Reason.NO_MATCHING_SUPPLY: "no machine fits it, in whatever state",
        Reason.TOPOLOGY_UNSATISFIABLE: "its machines must share a domain, and no single domain has "
        "room for all of it",
        Reason.PREEMPTION_EXHAUSTED: "all machines of lower priority that fit are being taken for "
        "it, and they are not enough",
        Reason.QUOTA: "the shard's share of the provider's quota is used up",
        Reason.SPEND_LIMIT: "more machines would exceed the spend limit",
        Reason.STOCK_OUT: "the provider has run out of machines that fit",
        Reason.BOOTSTRAP_ERROR: "its cluster accepts no machines at present: it has no session, or "
        "could not render bootstrap data",
        Reason.PAUSED: "the shard is paused: it decides, but executes nothing",
        Reason.FROZEN: "the shard leaves its cluster out of its decisions, because the cluster's "
        "demand is too much work: it keeps its machines and gets none",
    }
)
"""Why a need is unmet, in words that follow "the need is unmet: "."""

FAILING_CREATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "out_of_capacity": WHY[Reason.STOCK_OUT],
        "quota": "the provider's own limit is reached",
        "bad_request": "the provider refuses to create machines that fit",
        "throttled": "the provider throttles the creation of machines that fit",
        "unavailable": "the provider fails to create machines that fit",
    }
)
"""Why the Creates of machines that fit fail, by the class of the failure."""

NEXT: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.QUOTA: "`bigfleetctl list-quotas` shows who has which share",
        Reason.STOCK_OUT: "the log of the shard says why Creates fail",
        Reason.BOOTSTRAP_ERROR: "the log of the cluster's operator says what is wrong",
        Reason.PAUSED: "`bigfleetctl resume` ends the pause",
        Reason.FROZEN: "fewer different rows in the cluster end it; the log of the shard gives "
        "the weights",
    }
)
"""Where to look next; not a remedy, and not tried."""


def words(reason: Reason | str | int) -> str:
    """The words of a reason, by its value, its number on the wire or its name."""
    try:
        return WHY[Reason[reason] if isinstance(reason, str) else Reason(reason)]
    except (KeyError, ValueError):
        return f"for a reason this version does not know ({reason})"
