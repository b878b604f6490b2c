"""Demand on the wire as values, and back: requirements, spread, tolerations, penalties, amounts,
whole rows.

What refuses a roll-up is refused here, with a message that names the row's part: an operator or a
penalty bucket outside its enum, Gt or Lt without exactly one integer, a toleration that Kubernetes
would refuse, a quantity that cannot be read or kept. Everything else is taken: `In` without values
holds for no machine, an unknown `when_unsatisfiable` counts as not stated. Keeping demand over time
is left to the shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bigfleet.model import (
    Need,
    Profile,
    QuantityError,
    Requirement,
    RequirementError,
    RequirementOperator,
    Spread,
    SpreadMode,
    bucket_from_int,
    format_resources,
    parse_resources,
)
from bigfleet.model.errors import shown
from bigfleet.wire.taints import tolerations_from_proto, tolerations_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2 as pb

MAX_WHOLE: Final = 2**61
"""Largest amount of one resource in one row, in whole units: 2 Ei of memory. Columns add rows up in
64 bits."""
_MILLI: Final = 1000

_WIRE: Final = pb.NodeSelectorRequirement
_OPERATORS: Final = {
    _WIRE.OPERATOR_UNSPECIFIED: RequirementOperator.UNSPECIFIED,
    _WIRE.OPERATOR_IN: RequirementOperator.IN,
    _WIRE.OPERATOR_NOT_IN: RequirementOperator.NOT_IN,
    _WIRE.OPERATOR_EXISTS: RequirementOperator.EXISTS,
    _WIRE.OPERATOR_DOES_NOT_EXIST: RequirementOperator.DOES_NOT_EXIST,
    _WIRE.OPERATOR_SAME: RequirementOperator.SAME,
    _WIRE.OPERATOR_GT: RequirementOperator.GT,
    _WIRE.OPERATOR_LT: RequirementOperator.LT,
}
_NUMBERS: Final = {operator: number for number, operator in _OPERATORS.items()}
_WITHOUT_VALUES: Final = frozenset({RequirementOperator.EXISTS, RequirementOperator.DOES_NOT_EXIST})
_MODES: Final = {
    pb.TopologySpread.WHEN_UNSATISFIABLE_UNSPECIFIED: SpreadMode.UNSPECIFIED,
    pb.TopologySpread.WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE: SpreadMode.DO_NOT_SCHEDULE,
    pb.TopologySpread.WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY: SpreadMode.SCHEDULE_ANYWAY,
}
_MODE_NUMBERS: Final = {mode: number for number, mode in _MODES.items()}


def requirement_from_proto(proto: pb.NodeSelectorRequirement) -> Requirement:
    """One requirement in canonical form."""
    operator = _OPERATORS.get(proto.operator)
    if operator is None:
        raise RequirementError(
            f"{shown(proto.key)}: operator {proto.operator} does not exist: use 0 to 5, or 100 "
            "(Gt) and 101 (Lt)"
        )
    if operator in (RequirementOperator.GT, RequirementOperator.LT):
        # The key is not looked at: a label without a name is on no machine, and that is an answer.
        checked = Requirement.of(proto.key or "a label without a name", operator, proto.values)
        return Requirement(proto.key, operator, checked.values)
    if operator in _WITHOUT_VALUES:
        return Requirement(proto.key, operator)
    return Requirement(proto.key, operator, tuple(sorted(set(proto.values))))


def requirements_to_proto(
    requirements: Iterable[Requirement],
) -> list[pb.NodeSelectorRequirement]:
    """Requirements as they are sent, in the order given."""
    return [
        pb.NodeSelectorRequirement(key=r.key, operator=_NUMBERS[r.operator], values=r.values)
        for r in requirements
    ]


def spread_from_proto(entries: Iterable[pb.TopologySpread]) -> list[Spread]:
    """Spread constraints; one that names no label constrains nothing and is left out."""
    return [
        # No skew below one can be kept, so one is what such an entry comes closest to.
        Spread(
            entry.topology_key,
            max(1, entry.max_skew),
            _MODES.get(entry.when_unsatisfiable, SpreadMode.UNSPECIFIED),
        )
        for entry in entries
        if entry.topology_key
    ]


def profile_from_proto(row: pb.CapacityNeed) -> Profile:
    """The canonical profile of a row; amounts, group and size class are not looked at."""
    return Profile.of(
        [requirement_from_proto(requirement) for requirement in row.requirements],
        spread_from_proto(row.spread),
        row.priority,
        bucket_from_int(row.interruption_penalty_bucket),
        bucket_from_int(row.reclamation_penalty_bucket),
        tolerations_from_proto(row.tolerations),
    )


def amounts_from_proto(texts: Mapping[str, str], what: str) -> dict[str, int]:
    """Milli-units per resource; `what` names the map in a refusal."""
    amounts = parse_resources(texts, what)
    for name, amount in amounts.items():
        check_amount(name, amount, what)
    return amounts


def check_amount(name: str, milli: int, what: str) -> None:
    """Refuse what columns cannot hold."""
    if milli > MAX_WHOLE * _MILLI:
        raise QuantityError(
            f"{what}: resource {name!r}: {milli // _MILLI} is more than {MAX_WHOLE}, the most one "
            "row may ask for: split the row by group or size class"
        )


def need_from_proto(row: pb.CapacityNeed, cluster: str, arrival_ns: int = 0) -> Need:
    """One row as a value."""
    return Need(
        cluster=cluster,
        profile=profile_from_proto(row),
        aggregate=amounts_from_proto(row.aggregate_resources, "aggregate_resources"),
        min_unit=amounts_from_proto(row.min_unit, "min_unit"),
        group=row.group,
        size_class=row.size_class,
        arrival_ns=arrival_ns,
    )


def need_to_proto(need: Need) -> pb.CapacityNeed:
    """A row as it is sent."""
    profile = need.profile
    return pb.CapacityNeed(
        requirements=requirements_to_proto(profile.requirements),
        aggregate_resources=format_resources(need.aggregate),
        priority=profile.priority,
        spread=[
            pb.TopologySpread(
                topology_key=spread.key,
                max_skew=spread.max_skew,
                when_unsatisfiable=_MODE_NUMBERS[spread.when],
            )
            for spread in profile.spread
        ],
        interruption_penalty_bucket=pb.PenaltyBucket.ValueType(profile.interruption),
        reclamation_penalty_bucket=pb.PenaltyBucket.ValueType(profile.reclamation),
        min_unit=format_resources(need.min_unit),
        group=need.group,
        size_class=need.size_class,
        tolerations=tolerations_to_proto(profile.tolerations),
    )
