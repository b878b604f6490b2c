"""Where a Pod may run: node selector and required affinity as requirements, and its tolerations.

A CapacityRequest has no OR. Terms that differ only in the values of one key become one In; of
others the first is used, and a note says so. Terms that no node can satisfy are dropped, as the
scheduler does; where nothing but such terms is left, the Pod can run nowhere.

Kubernetes gives every Pod some tolerations by itself: for nodes that are not ready or under
pressure. No provider declares those taints for its machines, so they are left out; with them equal
workloads would still be equal, but every request would carry them. A toleration with a limit in
seconds covers NoExecute for that time only, and a machine is bought for longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    Requirement,
    RequirementError,
    RequirementOperator,
    TaintError,
    Toleration,
)
from bigfleet.podcontroller.pods import Expression, NodeTerm, PodSpec, PodToleration

ANYWHERE: Final = Requirement(LABEL_INSTANCE_TYPE, RequirementOperator.EXISTS)
_OPERATORS: Final = {
    operator.value: operator
    for operator in RequirementOperator
    if operator not in (RequirementOperator.SAME, RequirementOperator.UNSPECIFIED)
}
_OF_EVERY_POD: Final = re.compile(
    r"node\.kubernetes\.io/(not-ready|unreachable|unschedulable|network-unavailable|out-of-service"
    r"|(disk|memory|pid)-pressure)"
)
Term = frozenset[Requirement]


@dataclass(frozen=True, slots=True)
class NodeRequirements:
    """Requirements, or none where the Pod can run nowhere; notes are for its owner."""

    requirements: tuple[Requirement, ...] | None
    notes: tuple[str, ...] = ()


def wanted_nodes(spec: PodSpec) -> NodeRequirements:
    """What a Pod asks of its node."""
    try:
        chosen = {
            Requirement.of(key, RequirementOperator.IN, (value,))
            for key, value in (spec.node_selector or {}).items()
        }
    except RequirementError as error:
        return NodeRequirements(None, (f"Its node selector can never hold: {error}.",))
    affinity = spec.affinity and spec.affinity.node_affinity
    selector = affinity and affinity.required_during_scheduling_ignored_during_execution
    notes: list[str] = []
    if selector:
        terms = _readable(selector.node_selector_terms, notes)
        if not terms:
            notes.append("No term of the required node affinity can hold on any node.")
            return NodeRequirements(None, tuple(notes))
        chosen |= _one_term(terms, notes)
    return NodeRequirements(tuple(sorted(chosen)) or (ANYWHERE,), tuple(notes))


def merged(terms: list[Term]) -> Term | None:
    """One term that holds exactly where one of these does; None where there is no such."""
    first = terms[0]
    if all(term == first for term in terms):
        return first
    for one in sorted(first):
        if one.operator is not RequirementOperator.IN:
            continue
        rest = first - {one}
        values = [_values_beside(rest, one.key, term) for term in terms]
        if all(found is not None for found in values):
            united = {value for found in values if found for value in found}
            return rest | {Requirement.of(one.key, RequirementOperator.IN, united)}
    return None


def _values_beside(rest: Term, key: str, term: Term) -> tuple[str, ...] | None:
    """The values of the one In on `key` by which a term differs from the rest, if that is all."""
    others = term - rest
    if len(others) != 1 or not rest <= term:
        return None
    (other,) = others
    return other.values if other.key == key and other.operator is RequirementOperator.IN else None


def _one_term(terms: list[Term], notes: list[str]) -> Term:
    one = merged(terms)
    if one is not None:
        return one
    notes.append(
        f"The required node affinity has {len(terms)} terms that differ in more than the values "
        "of one key; capacity is asked for by the first."
    )
    return terms[0]


def _readable(terms: tuple[NodeTerm, ...], notes: list[str]) -> list[Term]:
    found: list[Term] = []
    for term in terms:
        if term.match_fields:
            notes.append("A node affinity by field names single nodes; the field is left out.")
        expressions = term.match_expressions or ()
        if not expressions and not term.match_fields:
            # As for the scheduler, a term without anything holds nowhere.
            continue
        try:
            found.append(frozenset(_requirement(expression) for expression in expressions))
        except RequirementError as error:
            notes.append(f"A term of the required node affinity can never hold: {error}.")
    return found


def _requirement(expression: Expression) -> Requirement:
    operator = _OPERATORS.get(expression.operator)
    if operator is None:
        raise RequirementError(f"operator {expression.operator!r} does not exist")
    return Requirement.of(expression.key, operator, expression.values or ())


def tolerations_of(
    tolerations: Iterable[PodToleration],
) -> tuple[tuple[Toleration, ...], list[str]]:
    """The tolerations in canonical order; notes for the owner on what is left out."""
    found: set[Toleration] = set()
    notes: list[str] = []
    for one in tolerations:
        if _OF_EVERY_POD.fullmatch(one.key) or one.toleration_seconds is not None:
            continue
        try:
            found.add(Toleration.of(one.key, one.operator, one.value, one.effect))
        except TaintError as error:
            notes.append(f"A toleration is left out of the request for capacity: {error}.")
    return tuple(sorted(found)), notes


def as_documents(tolerations: Iterable[Toleration]) -> list[dict[str, str]]:
    """As they are written in a CapacityRequest: without what is empty."""
    return [
        {name: str(value) for name, value in asdict(one).items() if value} for one in tolerations
    ]
