"""Reasons and amounts in words: what a person is told about a need that stays unmet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bigfleet.cli.quantities import readable
from bigfleet.decision import Reason
from bigfleet.model import Need, Resources, format_resources
from bigfleet.simulate.supply import words as requirement_words

WHY: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.NONE: "met",
        Reason.PRIORITY_STARVED: "everything that could serve it serves needs as important or more",
        Reason.NO_MATCHING_SUPPLY: "no machine of the fleet could ever serve it",
        Reason.TOPOLOGY_UNSATISFIABLE: "no single domain has room for all of it",
        Reason.PREEMPTION_EXHAUSTED: "all it may preempt is preempted, and it is not enough",
        Reason.QUOTA: "the quota of the provider and region is used up",
        Reason.SPEND_LIMIT: "the spend limit is reached",
        Reason.STOCK_OUT: "the provider has run out of what would fit",
        Reason.BOOTSTRAP_ERROR: "its cluster takes no machines at present",
        Reason.PAUSED: "decisions are paused",
    }
)

HELP: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.NONE: "",
        Reason.PRIORITY_STARVED: "add machines that match, or raise its priority",
        Reason.NO_MATCHING_SUPPLY: "relax a requirement, or add machines that hold them all",
        Reason.TOPOLOGY_UNSATISFIABLE: "make the gang smaller, or add machines to one domain",
        Reason.PREEMPTION_EXHAUSTED: "add machines that match",
        Reason.QUOTA: "raise the quota",
        Reason.SPEND_LIMIT: "raise the spend limit, or ask for less",
        Reason.STOCK_OUT: "wait, or allow other types, zones or ways of paying",
        Reason.BOOTSTRAP_ERROR: "look at the cluster's operator and its bootstrap data",
        Reason.PAUSED: "resume decisions",
    }
)


def amounts(resources: Resources) -> str:
    """`cpu 4, memory 16Gi`; nothing when there is nothing."""
    texts = format_resources({name: amount for name, amount in resources.items() if amount})
    return ", ".join(f"{name} {readable(name, t)}" for name, t in texts.items()) or "nothing"


def plural(count: int, what: str) -> str:
    """`1 machine`, `2 machines`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def wishes(need: Need) -> list[str]:
    """What a need asks of its machines, line by line."""
    profile = need.profile
    lines = [requirement_words(requirement) for requirement in profile.requirements]
    lines += [
        f"spread over {spread.key}, at most {spread.max_skew} apart ({spread.when.value})"
        for spread in profile.spread
    ]
    return lines


def names(ids: list[str], most: int = 3) -> str:
    """The first few ids, and how many more there are."""
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} and {len(ids) - most:,} more"
