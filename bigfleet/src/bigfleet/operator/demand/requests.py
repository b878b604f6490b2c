"""A CapacityRequest as a value: a profile, a group, and what one request asks for.

Requests of one workload differ in little but their names, so what was read once is remembered by
what was written: tens of thousands of objects become a few profiles and a few sets of amounts.
The API server has checked most of it; what still cannot be carried is refused alone, with the
reason that is counted and the words its owner reads.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import msgspec

from bigfleet.model import (
    ModelError,
    Need,
    PenaltyError,
    Profile,
    QuantityError,
    Requirement,
    RequirementError,
    RequirementOperator,
    Spread,
    SpreadMode,
    Toleration,
    bucket_of,
    parse_resources,
    size_class,
)
from bigfleet.operator.errors import UnreadableRequestError
from bigfleet.wire.needs import check_amount

BAD_OPERATOR: Final = "bad_operator"
BAD_QUANTITY: Final = "bad_quantity"
ACKNOWLEDGED: Final = "Acknowledged"
PENDING: Final = "Pending"
UNMET: Final = "Unmet"
CO_LOCATION_NAMESPACES: Final = "bigfleet.lucy.sh/co-location-namespaces"
_CACHED: Final = 16_384
_OPERATORS: Final = {
    operator.value: operator
    for operator in RequirementOperator
    if operator not in (RequirementOperator.SAME, RequirementOperator.UNSPECIFIED)
}
Amount = str | int | float
Amounts = tuple[tuple[str, int], ...]
"""Milli-units by name, sorted; hashable."""


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class _Owner(_Part, frozen=True):
    controller: bool = False


class Meta(_Part, frozen=True):
    """Metadata of a CapacityRequest."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    owner_references: tuple[_Owner, ...] | None = None

    @property
    def is_controlled(self) -> bool:
        """Whether a controller writes it, and not a person."""
        return any(owner.controller for owner in self.owner_references or ())


class StatusCondition(_Part, frozen=True):
    """One condition of a CapacityRequest."""

    type: str = ""
    status: str = ""
    reason: str = ""


class NeedRef(_Part, frozen=True):
    """The need that a CapacityRequest's status names."""

    profile: str = ""
    group: str = ""


class RequestStatusFields(_Part, frozen=True):
    """How far a CapacityRequest is."""

    phase: str = ""
    need: NeedRef | None = None
    conditions: tuple[StatusCondition, ...] | None = None


class CapacityRequest(_Part, frozen=True):
    """A CapacityRequest; its spec is read by `demand_of`, so that a bad one spoils no list."""

    metadata: Meta = Meta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: RequestStatusFields = RequestStatusFields()


class _Expression(_Part, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class _SpreadSpec(_Part, frozen=True):
    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = SpreadMode.DO_NOT_SCHEDULE.value


class _Selector(_Part, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[_Expression, ...] | None = None


class _Toleration(_Part, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Near(_Part, frozen=True):
    topology_key: str
    label_selector: _Selector | None = None


class _Spec(_Part, frozen=True):
    resources: dict[str, Amount]
    requirements: tuple[_Expression, ...] | None = None
    priority: int = 0
    interruption_penalty: Amount | None = None
    reclamation_penalty: Amount | None = None
    topology_spread: tuple[_SpreadSpec, ...] | None = None
    co_location: _Near | None = None
    tolerations: tuple[_Toleration, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestDemand:
    """What one CapacityRequest asks for."""

    profile: Profile
    amounts: Amounts
    size_class: str
    group: str = ""
    tolerations: tuple[Toleration, ...] | None = None
    """None where the request does not say; `with_tolerations` brings them into the profile."""

    def with_tolerations(self) -> RequestDemand:
        """The same with its tolerations in the profile."""
        if not self.tolerations:
            return self
        return replace(self, profile=_tolerant(self.profile, self.tolerations))

    def without_tolerations(self) -> RequestDemand:
        """The same with none of them in the profile."""
        if not self.profile.tolerations:
            return self
        return replace(self, profile=_tolerant(self.profile, ()))

    @property
    def key(self) -> tuple[str, str, str]:
        """The row it is added up in: fingerprint, group, size class."""
        return (self.profile.fingerprint, self.group, self.size_class)

    @property
    def compares(self) -> bool:
        """Whether it uses Gt or Lt, which an older shard cannot read."""
        return any(
            r.operator in (RequirementOperator.GT, RequirementOperator.LT)
            for r in self.profile.requirements
        )

    def need(self) -> Need:
        """This request alone, as a row."""
        one = dict(self.amounts)
        return Need("", self.profile, one, one, group=self.group, size_class=self.size_class)


_decoder: Final = msgspec.json.Decoder(_Spec)


def demand_of(request: CapacityRequest) -> RequestDemand:
    """What a CapacityRequest asks for; a BadRequestError where no roll-up can carry it."""
    try:
        spec = _decoder.decode(request.spec)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = BAD_QUANTITY if "resources" in str(error) else BAD_OPERATOR
        raise UnreadableRequestError(reason, f"its spec cannot be read: {error}") from error
    try:
        amounts, size = _amounts(tuple(sorted(spec.resources.items())))
        near = spec.co_location
        profile = _profile(
            spec.requirements or (),
            spec.topology_spread or (),
            spec.priority,
            _text(spec.interruption_penalty),
            _text(spec.reclamation_penalty),
            "" if near is None else near.topology_key,
        )
        tolerations = None if spec.tolerations is None else _tolerations(spec.tolerations)
    except (QuantityError, PenaltyError) as error:
        raise UnreadableRequestError(BAD_QUANTITY, str(error)) from error
    except ModelError as error:
        raise UnreadableRequestError(BAD_OPERATOR, str(error)) from error
    group = "" if near is None else group_of(near, _namespace(request.metadata))
    return RequestDemand(profile, amounts, size, group, tolerations)


def group_of(near: _Near, namespace: str) -> str:
    """The gang: topology key, namespace and selector, the selector in one canonical form."""
    selector = near.label_selector or _Selector()
    expressions = sorted(
        {(key, "In", (value,)) for key, value in (selector.match_labels or {}).items()}
        | {
            (one.key, one.operator, tuple(sorted(set(one.values or ()))))
            for one in selector.match_expressions or ()
        }
    )
    encoded = msgspec.json.encode([near.topology_key, namespace, expressions])
    return f"{namespace}/{near.topology_key}/{hashlib.sha256(encoded).hexdigest()[:20]}"


def _namespace(meta: Meta) -> str:
    return (meta.annotations or {}).get(CO_LOCATION_NAMESPACES) or meta.namespace


@lru_cache(maxsize=_CACHED)
def _amounts(items: tuple[tuple[str, Amount], ...]) -> tuple[Amounts, str]:
    if not items:
        raise QuantityError("resources are empty: name at least one")
    parsed = parse_resources({name: _text(amount) or "0" for name, amount in items})
    for name, milli in parsed.items():
        check_amount(name, milli, "resources")
    nonzero = {name: milli for name, milli in parsed.items() if milli}
    return tuple(sorted(nonzero.items())), size_class(nonzero)


@lru_cache(maxsize=_CACHED)
def _profile(
    requirements: tuple[_Expression, ...], spread: tuple[_SpreadSpec, ...], priority: int,
    interruption: str | None, reclamation: str | None, near: str,
) -> Profile:  # fmt: skip
    wanted = [_requirement(one) for one in requirements]
    if near:
        wanted.append(Requirement.of(near, RequirementOperator.SAME))
    hard = [
        Spread(one.topology_key, one.max_skew)
        for one in spread
        if one.when_unsatisfiable != SpreadMode.SCHEDULE_ANYWAY
    ]
    return Profile.of(wanted, hard, priority, bucket_of(interruption), bucket_of(reclamation))


def _requirement(one: _Expression) -> Requirement:
    operator = _OPERATORS.get(one.operator)
    if operator is None:
        raise RequirementError(
            f"{one.key}: operator {one.operator!r} does not exist: use {', '.join(_OPERATORS)}"
        )
    return Requirement.of(one.key, operator, one.values or ())


@lru_cache(maxsize=_CACHED)
def _tolerations(stated: tuple[_Toleration, ...]) -> tuple[Toleration, ...]:
    found = {Toleration.of(one.key, one.operator, one.value, one.effect) for one in stated}
    return tuple(sorted(found))


@lru_cache(maxsize=_CACHED)
def _tolerant(profile: Profile, tolerations: tuple[Toleration, ...]) -> Profile:
    return replace(profile, tolerations=tolerations)


def _text(amount: Amount | None) -> str | None:
    return amount if amount is None or isinstance(amount, str) else str(amount)
