"""Why a need is unmet, in words: the reason, what was tried, what would match, what would help.

What blocks a need and what would help comes from the shard, which found it by deciding again; the
rest follows from the shard's view of the need. Nothing here is a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bigfleet.cli.ctl.render.formats import (
    SECOND,
    amount_words,
    amounts,
    condition,
    lasting,
    moment,
    name,
    plural,
    vector,
)
from bigfleet.model.reasons import NEXT, Reason, words
from bigfleet_api.v1alpha1 import capacity_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb

ESCALATES_AFTER: Final = 5
"""Cycles after which the coordinator asks other shards."""
_SAME: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_SAME


@dataclass(frozen=True, slots=True)
class NeedOfShard:
    """A need as one shard sees it."""

    shard: str
    view: pb.NeedView
    now: int
    option: str = ""
    """What names the shard on a command line; empty when it was named by its address."""

    @property
    def reason(self) -> str:
        """The kind of reason; empty when the need is met."""
        if self.view.satisfied:
            return ""
        return name(pb.UnmetReason.Name, self.view.unmet_reason, "UNMET_REASON_")

    @property
    def is_gang(self) -> bool:
        """Whether its machines must share a domain."""
        return any(r.operator == _SAME for r in self.view.need.requirements)

    def asks(self) -> str:
        """How much, and in which pieces."""
        need = self.view.need
        unit = amounts(need.min_unit)
        pieces = f" in pieces of at most {amount_words(unit)}" if unit else ""
        return amount_words(need.aggregate_resources) + pieces

    def where(self) -> str:
        """What it asks of its machines."""
        need = self.view.need
        parts = [condition(requirement) for requirement in need.requirements]
        parts += [f"spread over {s.topology_key}, at most {s.max_skew} apart" for s in need.spread]
        return "; ".join(parts) or "any machine"

    def verdict(self) -> str:
        """In a few words."""
        if self.view.satisfied:
            return "met"
        age = self.view.age_cycles_unmet
        return f"unmet for {plural(age, 'cycle')}: {self.reason}" if age else self.reason

    def has(self) -> str:
        """What it got so far."""
        view = self.view
        parts = [plural(view.claimed_machine_count, "machine")]
        if view.bootstrap_count:
            parts.append(f"{view.bootstrap_count:,} of them from idle in this cycle")
        if view.provision_count:
            parts.append(f"{view.provision_count:,} of them being created")
        if view.same_domain:
            parts.append(f"in domain {view.same_domain}")
        return ", ".join(parts)

    def why(self) -> str:
        """The reason in words."""
        return words(self.reason) if self.reason != "UNSPECIFIED" else "the shard gives no reason"

    def supply(self) -> str:
        """What would match it, including machines that serve others."""
        found = self.view.matching_supply
        least = "at least " if found.capped else ""
        if not (found.idle or found.configured or found.speculative):
            return "no machine matches"
        return (
            f"{least}{found.idle:,} idle, {found.configured:,} serving clusters, "
            f"{found.speculative:,} that could be created"
        )

    def tried(self) -> list[str]:
        """What was done for it, in the order of the cycle."""
        return list(self._tried())

    def _tried(self) -> Iterator[str]:
        view = self.view
        if view.claimed_machine_count:
            yield f"counted {plural(view.claimed_machine_count, 'machine')} for it"
        if view.same_candidates:
            best = view.same_candidates[0]
            yield (
                f"looked for one domain that holds it all; best: {best.domain} with "
                f"{best.coverage_per_mille / 10:g} %"
            )
        if view.bootstrap_count or view.provision_count:
            yield (
                f"took {view.bootstrap_count:,} idle and {view.provision_count:,} new machines "
                "in this cycle"
            )
        else:
            yield "looked for idle and new machines: none to take"
        if view.HasField("preemption"):
            freed = amount_words(view.preemption.capacity_freed.resources)
            victims = plural(view.preemption.victims_found, "machine")
            yield f"preempted less important work: {victims} found, freeing {freed}"
        if view.acquisition_parked:
            yield (
                f"set aside for {plural(view.parked_age_cycles, 'cycle')}: it is tried now and "
                "then instead of in every cycle"
            )
        if view.age_cycles_unmet > ESCALATES_AFTER:
            if self.is_gang:
                yield "kept at this shard: a gang never crosses shards"
            else:
                yield "old enough for other shards to be asked: see `bigfleetctl moves`"

    def domains(self) -> str:
        """The best domains of a gang."""
        return "; ".join(
            f"{d.domain} holds {d.coverage_per_mille / 10:g} %"
            + (" and is enough" if d.satisfiable else "")
            for d in self.view.same_candidates[:5]
        )

    @property
    def explanation(self) -> pb.NeedExplanation | None:
        """What the shard found by deciding again; None where it did not search."""
        return self.view.explanation if self.view.HasField("explanation") else None

    def helps(self) -> list[str]:
        """Which changes would help, each with the effect it had when the shard tried it."""
        found = self.explanation
        if found is None:
            return [f"not tried: leave out --no-remedies, or upgrade shard {self.shard}"]
        tried = [f"{remedy.change}: {remedy.effect}" for remedy in found.remedies]
        if not tried and found.why and not (found.blockers or found.incomplete):
            tried.append("no change that was tried gets it further")
        if found.not_tried:
            more = "more " if tried else ""
            tried.append(f"({plural(found.not_tried, more + 'possible change')} not tried)")
        return tried

    def next_step(self) -> str:
        """Where to look next; empty where the changes above say it all."""
        text = NEXT.get(Reason[self.reason], "") if self.reason in Reason.__members__ else ""
        return text.replace("bigfleetctl resume", f"bigfleetctl resume{self.option}")


def lines(seen: NeedOfShard) -> list[tuple[str, str]]:
    """An unmet need for people, line by line."""
    view = seen.view
    facts = [("asks", seen.asks()), ("of", seen.where())]
    if view.arrival_unix_nanos:
        facts.append(("since", lasting((seen.now - view.arrival_unix_nanos) / SECOND)))
    facts += [
        ("has", seen.has()),
        ("lacks", amount_words(view.residual_deficit.resources)),
        ("why", seen.why()),
        *(("tried" if not n else "", text) for n, text in enumerate(seen.tried())),
        ("matching", seen.supply()),
    ]
    if view.same_candidates:
        facts.append(("domains", seen.domains()))
    if seen.explanation is not None:
        facts.append(("blocked by", seen.explanation.why))
    facts += [("would help" if not n else "", text) for n, text in enumerate(seen.helps())]
    if seen.next_step():
        facts.append(("next", seen.next_step()))
    return facts


def need_document(seen: NeedOfShard) -> dict[str, object]:
    """A need for programs."""
    view, need = seen.view, seen.view.need
    document: dict[str, object] = {
        "shard": seen.shard,
        "cluster_id": view.cluster_id,
        "profile_fingerprint": view.profile_fingerprint,
        "priority": need.priority,
        "requirements": [condition(requirement) for requirement in need.requirements],
        "aggregate": amounts(need.aggregate_resources),
        "min_unit": amounts(need.min_unit),
        "group": need.group,
        "size_class": need.size_class,
        "arrival": moment(view.arrival_unix_nanos),
        "satisfied": view.satisfied,
        "machines": view.claimed_machine_count,
        "from_idle": view.bootstrap_count,
        "from_speculative": view.provision_count,
        "same_domain": view.same_domain,
    }
    if view.satisfied:
        return document
    supply, freed = view.matching_supply, view.preemption
    return document | {
        "reason": seen.reason,
        "age_cycles_unmet": view.age_cycles_unmet,
        "missing": vector(view.residual_deficit),
        "parked": view.acquisition_parked,
        "parked_age_cycles": view.parked_age_cycles,
        "matching_supply": {
            "idle": supply.idle,
            "configured": supply.configured,
            "speculative": supply.speculative,
            "capped": supply.capped,
        },
        "preemption": {
            "victims_found": freed.victims_found,
            "capacity_freed": vector(freed.capacity_freed),
        }
        if view.HasField("preemption")
        else None,
        "same_candidates": [
            {"domain": d.domain, "coverage_per_mille": d.coverage_per_mille, "ok": d.satisfiable}
            for d in view.same_candidates
        ],
        "why": seen.why(),
        "tried": seen.tried(),
        "next": seen.next_step(),
        "explanation": None if seen.explanation is None else _explanation(seen.explanation),
    }


def _explanation(found: pb.NeedExplanation) -> dict[str, object]:
    return {
        "why": found.why,
        "complete": not found.incomplete,
        "blockers": [
            {
                "kind": name(pb.BlockerKind.Name, blocker.kind, "BLOCKER_KIND_"),
                "detail": blocker.detail,
            }
            for blocker in found.blockers
        ],
        "holders": _counts(found.holders),
        "remedies": [
            {
                "change": remedy.change,
                "effect": remedy.effect,
                "met": remedy.met,
                "reached": vector(remedy.reached),
                "asked": vector(remedy.asked),
                "become_unmet": _counts(remedy.become_unmet),
                "get_less": _counts(remedy.get_less),
                "machines_preempted": remedy.machines_preempted,
            }
            for remedy in found.remedies
        ],
        "not_tried": found.not_tried,
    }


def _counts(counted: Iterable[pb.PriorityCount]) -> list[dict[str, int]]:
    return [{"priority": one.priority, "count": one.count} for one in counted]
