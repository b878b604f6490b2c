"""The refusals of the model, one small tree.

    ModelError(ValueError)
    ├── QuantityError       not a Kubernetes quantity, or an amount that cannot be used
    ├── PenaltyError        a penalty that has no bucket
    ├── RequirementError    a requirement whose operator and values do not fit together
    ├── SpreadError         a spread constraint that no placement satisfies
    ├── TaintError          a taint or toleration that Kubernetes would refuse
    ├── NeedError           a row of demand, or its profile, that makes no sense
    ├── MachineError        a machine record a shard must not take; `.reason` says which rule
    └── IllegalMoveError    a move of a machine that the lifecycle does not know

A message names the value and what to write instead. Which status or counter a refusal becomes is
decided at the edges.
"""

from __future__ import annotations

from typing import Final, Literal

RejectReason = Literal["price", "interruption_probability", "structural"]

REJECT_REASONS: Final[tuple[RejectReason, ...]] = (
    "price",
    "interruption_probability",
    "structural",
)


class ModelError(ValueError):
    """Something that is not a value of this model."""


class QuantityError(ModelError):
    """A text that is not a Kubernetes quantity, or an amount out of place."""


class PenaltyError(ModelError):
    """A penalty that has no bucket."""


class RequirementError(ModelError):
    """A requirement whose key, operator and values do not fit together."""


class SpreadError(ModelError):
    """A spread constraint that no placement satisfies."""


class TaintError(ModelError):
    """A taint or toleration that Kubernetes would refuse."""


class NeedError(ModelError):
    """A row of demand, or its profile, that makes no sense."""


class MachineError(ModelError):
    """A machine record that must not be taken; `reason` is the label it is counted under."""

    def __init__(self, message: str, reason: RejectReason = "structural") -> None:
        super().__init__(message)
        self.reason: RejectReason = reason


class IllegalMoveError(ModelError):
    """A move between two machine states that the lifecycle does not know."""


def shown(text: str) -> str:
    """Foreign text as it may stand in a message: one line, whatever is in it."""
    return text if text.isprintable() else repr(text)
