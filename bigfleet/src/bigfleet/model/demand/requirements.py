"""Requirements on a machine's labels, with Kubernetes' operators and one of our own, Same.

A requirement is a key, an operator and values, in one canonical form: values sorted, none twice,
an integer operand in its plainest writing. So equal requirements are equal values, and a profile
can be compared and hashed. Same speaks about a set of machines; of a single machine it asks only
that the label is there, and is among the values when there are any. That all of them share one
value is seen to where machines are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bigfleet.model.errors import RequirementError, shown

# Kubernetes reads both sides of Gt and Lt as 64-bit integers; leading zeros mean nothing.
_INTEGER: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})")
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


class RequirementOperator(StrEnum):
    """How a label is compared. Ordered by text, which is the order inside a profile."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    SAME = "Same"
    GT = "Gt"
    LT = "Lt"
    UNSPECIFIED = "Unspecified"
    """The wire's number 0: legal there, and holds for no machine."""


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One requirement. Build it with `of`, which checks and brings it into canonical form."""

    key: str
    operator: RequirementOperator
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: str, operator: RequirementOperator, values: Iterable[str] = ()) -> Requirement:
        """The canonical requirement, or a RequirementError that says what does not fit."""
        if not key:
            raise RequirementError(
                f"a requirement {operator.value} has no key: name the label it is about"
            )
        if isinstance(values, str):
            raise RequirementError(
                f"{shown(key)} {operator.value}: the values are one text {values!r}: give a list "
                "of texts"
            )
        given = tuple(values)
        match operator:
            case RequirementOperator.IN | RequirementOperator.NOT_IN if not given:
                raise RequirementError(f"{shown(key)} {operator.value}: needs at least one value")
            case RequirementOperator.EXISTS | RequirementOperator.DOES_NOT_EXIST if given:
                raise RequirementError(
                    f"{shown(key)} {operator.value}: takes no values: leave out {list(given)}"
                )
            case RequirementOperator.GT | RequirementOperator.LT:
                return cls(key, operator, (_bound(key, operator, given),))
            case _:
                return cls(key, operator, tuple(sorted(set(given))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a machine with these labels satisfies it, alone."""
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """The same for the value of the one label in question; None when it is absent."""
        match self.operator:
            case RequirementOperator.IN:
                return value is not None and value in self.values
            case RequirementOperator.NOT_IN:
                return value is None or value not in self.values
            case RequirementOperator.EXISTS:
                return value is not None
            case RequirementOperator.DOES_NOT_EXIST:
                return value is None
            case RequirementOperator.SAME:
                return value is not None and (not self.values or value in self.values)
            case RequirementOperator.GT | RequirementOperator.LT:
                return self._compares(value)
            case RequirementOperator.UNSPECIFIED:
                return False

    def _compares(self, value: str | None) -> bool:
        number = None if value is None else _integer(value)
        if number is None:
            return False
        bound = int(self.values[0])
        return number > bound if self.operator is RequirementOperator.GT else number < bound


def matches_all(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether a machine with these labels satisfies every one of them."""
    return all(requirement.matches(labels) for requirement in requirements)


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match["sign"] + match["digits"])
    return number if _INT64_MIN <= number <= _INT64_MAX else None


def _bound(key: str, operator: RequirementOperator, values: tuple[str, ...]) -> str:
    number = _integer(values[0]) if len(values) == 1 else None
    if number is None:
        raise RequirementError(
            f"{shown(key)} {operator.value}: takes exactly one decimal integer, but has "
            f"{list(values)}"
        )
    return str(number)
