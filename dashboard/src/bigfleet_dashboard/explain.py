"""One need in words: what it asks and got, why it is unmet, what was tried, what would help.

Everything follows from the shard's own view of the need; nothing is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bigfleet.model import QuantityError, parse_milli
from bigfleet.model.reasons import words as reason_words
from bigfleet_api.v1alpha1 import capacity_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.state.needs import NeedRow

_OPERATORS: Final = {
    1: "is one of",
    2: "is none of",
    3: "is set",
    4: "is not set",
    5: "is the same for all its machines",
    100: "is above",
    101: "is below",
}
_HELP: Final[Mapping[str, tuple[str, ...]]] = {
    "PRIORITY_STARVED": (
        "Add machines that match its requirements.",
        "Raise its priority above what holds the machines now.",
    ),
    "NO_MATCHING_SUPPLY": (
        "Relax the requirement that excludes the most machines.",
        "Register a provider, or add an offering, that has what it asks for.",
    ),
    "TOPOLOGY_UNSATISFIABLE": (
        "Make the gang smaller, or add machines to the domain that covers most of it.",
        "Allow a wider domain: a zone instead of a rack.",
    ),
    "PREEMPTION_EXHAUSTED": ("Add machines that match its requirements.",),
    "QUOTA": (
        "Raise this shard's slice: bigfleetctl set-quota.",
        "Where the provider's own limit is reached, have that raised.",
    ),
    "SPEND_LIMIT": ("Raise --max-dollars-per-hour of the shard, or ask for less.",),
    "STOCK_OUT": (
        "Allow other types, zones or ways of paying.",
        "Wait: stock comes back.",
        "Look at the shard's log for what the provider says.",
    ),
    "BOOTSTRAP_ERROR": ("Look at the operator's log in that cluster, and its bootstrap template.",),
    "PAUSED": ("Resume it: bigfleetctl resume.",),
}


@dataclass(frozen=True, slots=True)
class Drawer:
    """What a person is told about one need."""

    title: str
    verdict: str
    summary: str
    asks: tuple[str, ...]
    got: tuple[str, ...]
    why: tuple[str, ...]
    tried: tuple[str, ...]
    helps: tuple[str, ...]
    domains: tuple[dict[str, object], ...]

    def document(self) -> dict[str, object]:
        """As the API shows it."""
        return {
            "title": self.title,
            "verdict": self.verdict,
            "summary": self.summary,
            "asks": self.asks,
            "got": self.got,
            "why": self.why,
            "tried": self.tried,
            "helps": self.helps,
            "domains": self.domains,
        }


def drawer(row: NeedRow) -> Drawer:
    """Everything about a need."""
    view = row.view
    return Drawer(
        title=f"{row.cluster}: {row.label if row.view.need.group else amounts(row.asks)}",
        verdict="Met" if row.satisfied else f"Unmet: {row.reason.replace('_', ' ').lower()}",
        summary=_summary(row),
        asks=tuple(_asks(view.need)),
        got=tuple(_got(view)),
        why=() if row.satisfied else (_sentence(reason_words(row.reason)), *_why(view)),
        tried=() if row.satisfied else tuple(_tried(view)),
        helps=() if row.satisfied else (*_helps(view), *_HELP.get(row.reason, ())),
        domains=tuple(
            {
                "domain": each.domain,
                "coverage_percent": each.coverage_per_mille / 10,
                "covers": each.satisfiable,
            }
            for each in view.same_candidates
        ),
    )


def amounts(resources: Mapping[str, str]) -> str:
    """`cpu 4.5, memory 16Gi`; nothing when there is nothing."""
    described = (
        f"{name} {quantity(text)}"
        for name, text in sorted(resources.items())
        if text not in ("", "0")
    )
    return ", ".join(described) or "nothing"


def quantity(text: str) -> str:
    """`24.5` of `24500m`: thousandths are for machines, not for people."""
    milli = text.removesuffix("m")
    return f"{int(milli) / 1000:g}" if milli != text and milli.isdecimal() else text


def plural(count: int, what: str) -> str:
    """`1 machine`, `2 machines`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _summary(row: NeedRow) -> str:
    machines = plural(row.machines, "machine")
    if row.satisfied:
        return f"has {machines}"
    missing = amounts(row.view.residual_deficit.resources)
    return f"has {machines}; missing: {missing}" if missing != "nothing" else f"has {machines}"


def _asks(need: capacity_pb2.CapacityNeed) -> Iterator[str]:
    unit = amounts(need.min_unit)
    pieces = f", in pieces of at most {unit}" if unit != "nothing" else ""
    yield f"{amounts(need.aggregate_resources)} in all{pieces}"
    for requirement in need.requirements:
        operator = _OPERATORS.get(requirement.operator, f"operator {int(requirement.operator)}")
        values = f" {', '.join(requirement.values)}" if requirement.values else ""
        yield f"{requirement.key} {operator}{values}"
    for spread in need.spread:
        yield f"spread over {spread.topology_key}, at most {spread.max_skew} apart"
    yield f"priority {need.priority:,}"


def _got(view: pb.NeedView) -> Iterator[str]:
    held = view.claimed_machine_count - view.bootstrap_count - view.provision_count
    yield (
        f"{plural(view.claimed_machine_count, 'machine')}: {max(held, 0):,} it had, "
        f"{view.bootstrap_count:,} taken from idle in the last cycle, "
        f"{view.provision_count:,} being created"
    )
    if view.same_domain:
        yield f"in {view.same_domain}"
    if view.residual_deficit.resources:
        yield f"still missing: {amounts(view.residual_deficit.resources)}"


def _why(view: pb.NeedView) -> Iterator[str]:
    supply = view.matching_supply
    more = " or more" if supply.capped else ""
    yield (
        f"Machines that would fit, free or in use: {supply.configured:,}{more} in use, "
        f"{supply.idle:,}{more} idle, {supply.speculative:,}{more} that could be created."
    )
    if view.age_cycles_unmet:
        yield f"It has been unmet for {plural(view.age_cycles_unmet, 'cycle')}."


def _tried(view: pb.NeedView) -> Iterator[str]:
    supply = view.matching_supply
    yield "Idle machines, cheapest first: " + (
        "none that fits is left."
        if not supply.idle
        else f"{supply.idle:,} fit, given to needs before it."
    )
    yield "Machines to create: " + (
        "none that fits is left."
        if not supply.speculative
        else f"{supply.speculative:,} would fit; they are taken, sold out, or beyond a limit."
    )
    if view.preemption.victims_found:
        freed = amounts(view.preemption.capacity_freed.resources)
        yield (
            f"Preemption: {plural(view.preemption.victims_found, 'machine')} of less important "
            f"needs found, which frees {freed}."
        )
    else:
        yield "Preemption: no machine of a less important need could be taken."
    if view.acquisition_parked:
        yield f"Set aside for {plural(view.parked_age_cycles, 'cycle')}: tried now and then only."
    if view.age_cycles_unmet > 5:
        yield "The coordinator knows, and looks for machines in other shards."


def _helps(view: pb.NeedView) -> Iterator[str]:
    if view.preemption.victims_found and not view.residual_deficit.resources:
        yield "Nothing is needed: the machines being drained for it are enough."
    more = _machines_missing(view)
    if more:
        yield f"About {plural(more, 'more machine')} like those it has would be enough."
    best = max(view.same_candidates, key=lambda d: d.coverage_per_mille, default=None)
    if best is not None and not best.satisfiable:
        yield f"{best.domain} already covers {best.coverage_per_mille / 10:g} % of it."


def _machines_missing(view: pb.NeedView) -> int:
    """How many more would do, each giving as much as those it has give; 0 where that is unknown."""
    have, most = view.claimed_machine_count, 0
    try:
        for name, text in view.residual_deficit.resources.items():
            missing = parse_milli(text)
            got = parse_milli(view.need.aggregate_resources.get(name, "0")) - missing
            if missing > 0 and got > 0:
                most = max(most, -(-missing * have // got))
    except QuantityError:
        return 0
    return most
