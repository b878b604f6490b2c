"""Blockers, remedies and effects in words: with `model.reasons` and `model.blockers`, all that the
shard, bigfleetctl and the dashboard say about an unmet need. Others appear as counts and
priorities, never by the names of their clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bigfleet.explanation import changes as ch
from bigfleet.explanation.blockers import Blocker
from bigfleet.explanation.remedies import Remedy
from bigfleet.explanation.situation import Effect, Situation
from bigfleet.explanation.trials import Explanation, TriedRemedy
from bigfleet.model import Need, Requirement, Resources, format_resources
from bigfleet.model.amounts.resources import readable
from bigfleet.model.blockers import (
    BLOCKED_BY,
    MORE_THAN_TWO,
    NOT_FOUND_IN_TIME,
    BlockerKind,
)
from bigfleet.model.demand.profile import SpreadMode

K = BlockerKind
_MOST_LISTED = 4


def why(explanation: Explanation, need: Need, total: Resources) -> str:
    """What blocks a need; ``total`` is what machines that match hold together."""
    if explanation.met:
        return "what it lacks is being drained for it"
    if not explanation.found_in_time:
        return NOT_FOUND_IN_TIME
    if not explanation.blockers:
        return MORE_THAN_TWO
    parts = [blocked_by(blocker, need, total) for blocker in explanation.blockers]
    text = " and ".join(parts)
    if any(b.kind is K.PRIORITY for b in explanation.blockers) and explanation.holders:
        text += f" ({holders(explanation.holders)})"
    return text


def blocked_by(blocker: Blocker, need: Need, total: Resources) -> str:
    """One blocker, as it follows "blocked by"."""
    return BLOCKED_BY[blocker.kind].format(detail=detail(blocker, need, total))


def detail(blocker: Blocker, need: Need, total: Resources) -> str:
    """Which requirement, resource, amount or topology; empty where the kind says it all."""
    match blocker.kind:
        case K.TAINT:
            return f"{blocker.taint}, not tolerated"
        case K.REQUIREMENT:
            return "" if blocker.requirement is None else condition(blocker.requirement)
        case K.DIMENSION:
            return blocker.dimension
        case K.SIZE:
            return amounts(need.min_unit)
        case K.AMOUNT:
            return amounts(total)
        case K.TOPOLOGY:
            return _topology(need)
        case K.STOCK_OUT:
            return "the provider has run out of machines that match"
        case _:
            return ""


def holders(counted: Mapping[int, int]) -> str:
    """`12 machines serve priority 100, 3 serve priority 1,000`, the highest priorities first."""
    ordered = sorted(counted.items(), reverse=True)
    parts = [f"{count:,} serve priority {priority:,}" for priority, count in ordered[:_MOST_LISTED]]
    rest = sum(count for _, count in ordered[_MOST_LISTED:])
    more = [f"{rest:,} serve lower ones"] if rest else []
    return "of the machines that match, " + ", ".join([*parts, *more])


def change(remedy: Remedy, situation: Situation) -> str:
    """What a remedy changes."""
    return " and ".join(_change(one, situation) for one in remedy.changes)


def _change(one: ch.SituationChange, situation: Situation) -> str:
    match one:
        case ch.AddedToleration(taint=taint):
            return f"tolerate the taint {taint}"
        case ch.WithoutRequirement(requirement=requirement):
            return f"drop the requirement {condition(requirement)}"
        case ch.WithoutDimension(name=name):
            return f"ask for no {name}"
        case ch.PieceSize(unit=unit):
            return f"split it into pieces of at most {amounts(dict(unit))}"
        case ch.AcrossDomains():
            return "let its machines be in any domains, without Same or spread"
        case ch.Interruptible():
            return "set an interruption penalty that is not pinned"
        case ch.WithPriority(priority=priority):
            return f"raise its priority to {priority:,}"
        case ch.ChangedAggregate(aggregate=aggregate):
            return f"ask for {amounts(dict(aggregate))} in all"
        case ch.WithQuotas(slots=slots):
            parts = [f"{provider}/{region} to {count:,}" for (provider, region), count in slots]
            return f"raise the shard's quota at {', '.join(parts)} machines"
        case ch.WithSpendLimit(micro=micro):
            return f"raise the spend limit to ${(micro or 0) / 1e6:,.2f} per hour"
        case ch.OfferingsRestocked(offerings=offerings):
            return f"wait until {_offerings(offerings)} are in stock again"
        case ch.ClusterConnected():
            return "let its cluster accept machines again; the log of its operator says what fails"
        case ch.MachinesAdded(like=like, count=count):
            return _added(like, count, situation)
        case _:
            return type(one).__name__


def effect(tried: TriedRemedy) -> str:
    """How far a remedy gets, and who pays for it."""
    found = tried.effect
    text = "met" if found.met else _reached(found)
    if found.preempted:
        text += f", once {_plural(found.preempted, 'machine')} are drained for it"
    if found.become_unmet:
        text += f"; leaves unmet: {_counts(found.become_unmet)}"
    if found.get_less:
        text += f"; {_counts(found.get_less)}, unmet already, get less"
    return text


def condition(requirement: Requirement) -> str:
    """A requirement as one reads it: `pool In [a, b]`."""
    values = f" [{', '.join(requirement.values)}]" if requirement.values else ""
    return f"{requirement.key} {requirement.operator.value}{values}"


def amounts(resources: Resources) -> str:
    """`cpu 4, memory 16Gi`."""
    listed = format_resources({name: n for name, n in sorted(resources.items()) if n})
    return ", ".join(f"{name} {readable(name, text)}" for name, text in listed.items()) or "nothing"


def _reached(found: Effect) -> str:
    """`12 of 16 cpu`, in the resources that are missing."""
    missing = sorted(found.shortfall)
    got = format_resources({name: found.got.get(name, 0) for name in missing})
    asked = format_resources({name: found.asked[name] for name in missing})
    parts = [f"{readable(n, got[n])} of {readable(n, asked[n])} {n}" for n in missing]
    return ", ".join(parts)


def _counts(counted: Mapping[int, int]) -> str:
    parts = [f"{_plural(n, 'need')} of priority {p:,}" for p, n in counted.items()]
    more = len(parts) - _MOST_LISTED
    return ", ".join(parts[:_MOST_LISTED]) + (f" and {more} more priorities" if more > 0 else "")


def _topology(need: Need) -> str:
    parts = [f"all in one {r.key}" for r in need.profile.same]
    parts += [
        f"spread over {s.key}, at most {s.max_skew} apart"
        for s in need.profile.spread
        if s.when is SpreadMode.DO_NOT_SCHEDULE
    ]
    return ", ".join(parts)


def _offerings(offerings: Sequence[tuple[object, ...]]) -> str:
    names = [f"{o[1]} in {o[2]}" for o in offerings]
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _added(like: str, count: int, situation: Situation) -> str:
    fleet = situation.fleet
    row = list(fleet.ids).index(like)
    table = fleet.classes
    _, instance_type, zone, capacity_type = table.offerings[int(table.offering[fleet.cls[row]])]
    where = f" in {zone}" if zone else ""
    return (
        f"add {_plural(count, 'machine')} of type {instance_type}{where} ({capacity_type.label}), "
        "with the labels that it asks for"
    )


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
