"""Amounts and requirements of a need in words; the words of reasons are in `model.reasons`."""

from __future__ import annotations

from bigfleet.model import Need, Resources, format_resources
from bigfleet.model.amounts.readable import readable
from bigfleet.scenario.supply import words as requirement_words


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
