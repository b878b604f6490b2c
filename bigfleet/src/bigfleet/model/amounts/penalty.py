"""Penalty buckets: what an interruption, or the loss of a machine, costs, in 28 steps.

A penalty in dollars is rounded up to the bound of its bucket, so that demand falls into few
classes; from there on only the bucket is used. The numbers are those of the wire. Absent and zero
are different buckets, hence different rows of demand, but are worth the same: nothing. Pinned is
worth more than anything.
"""

from __future__ import annotations

import math
from decimal import Decimal
from enum import IntEnum
from typing import Final

from bigfleet.model.amounts.quantity import parse_quantity
from bigfleet.model.errors import PenaltyError, QuantityError

_MICRO: Final = 1_000_000
_NANO: Final = 10**9
_TOP_FINITE: Final = 8_388_608
_INFINITE_TEXTS: Final = frozenset({"inf", "+inf", "Inf", "+Inf"})


class PenaltyBucket(IntEnum):
    """One bucket; its number is the one on the wire, its name the upper bound in dollars."""

    UNSPECIFIED = 0
    ZERO = 1
    HALF_DOLLAR = 2
    DOLLARS_1 = 3
    DOLLARS_2 = 4
    DOLLARS_4 = 5
    DOLLARS_8 = 6
    DOLLARS_16 = 7
    DOLLARS_32 = 8
    DOLLARS_64 = 9
    DOLLARS_128 = 10
    DOLLARS_256 = 11
    DOLLARS_512 = 12
    DOLLARS_1024 = 13
    DOLLARS_2048 = 14
    DOLLARS_4096 = 15
    DOLLARS_8192 = 16
    DOLLARS_16384 = 17
    DOLLARS_32768 = 18
    DOLLARS_65536 = 19
    DOLLARS_131072 = 20
    DOLLARS_262144 = 21
    DOLLARS_524288 = 22
    DOLLARS_1048576 = 23
    DOLLARS_2097152 = 24
    DOLLARS_4194304 = 25
    DOLLARS_8388608 = 26
    PINNED = 27

    @property
    def pinned(self) -> bool:
        """Whether no finite amount of money pays for it."""
        return self is PenaltyBucket.PINNED

    @property
    def dollars(self) -> float:
        """What the bucket is worth: its upper bound; nothing when absent, all when pinned."""
        return math.inf if self.pinned else self.micro / _MICRO

    @property
    def micro(self) -> int:
        """What a finite bucket is worth in micro-dollars. Pinned has none: ask `pinned` first."""
        return _micro_of(self)

    @property
    def label(self) -> str:
        """The dollar value as text, for a metric. Absent reads `0`: a label speaks of worth."""
        return _LABELS[self]


def bucket_of(dollars: float | Decimal | str | None) -> PenaltyBucket:
    """The bucket of a raw penalty, rounded up; None is absent, NaN is refused.

    A text is a quantity, as clusters write it: `500m` is half a dollar.
    """
    if dollars is None:
        return PenaltyBucket.UNSPECIFIED
    amount = _number(dollars)
    if amount <= 0:
        return PenaltyBucket.ZERO
    if amount <= Decimal("0.5"):
        return PenaltyBucket.HALF_DOLLAR
    if amount > _TOP_FINITE:
        return PenaltyBucket.PINNED
    # The smallest power of two that is not below the amount: 2^k is bucket k+3.
    return PenaltyBucket((math.ceil(amount) - 1).bit_length() + PenaltyBucket.DOLLARS_1)


def bucket_from_int(number: int) -> PenaltyBucket:
    """The bucket with this number on the wire."""
    try:
        return PenaltyBucket(number)
    except ValueError:
        raise PenaltyError(
            f"penalty bucket {number} does not exist: use 0 (none stated) to 27 (pinned)"
        ) from None


def _number(dollars: float | Decimal | str) -> Decimal:
    amount = _number_in(dollars) if isinstance(dollars, str) else Decimal(dollars)
    if amount.is_nan():
        raise PenaltyError(f"penalty {dollars!r} is not a number: give dollars, or leave it out")
    return amount


def _number_in(text: str) -> Decimal:
    # Infinity is how a pinned penalty is written where only numbers are kept.
    if text in _INFINITE_TEXTS:
        return Decimal("Infinity")
    try:
        return Decimal(parse_quantity(text).nano) / _NANO
    except QuantityError as error:
        raise PenaltyError(f"penalty {text!r} is not a number of dollars: {error}") from None


def _micro_of(bucket: PenaltyBucket) -> int:
    match bucket:
        case PenaltyBucket.UNSPECIFIED | PenaltyBucket.ZERO:
            return 0
        case PenaltyBucket.HALF_DOLLAR:
            return _MICRO // 2
        case PenaltyBucket.PINNED:
            raise PenaltyError(
                "a pinned penalty has no finite worth: check `pinned` before asking for it"
            )
        case _:
            return _MICRO << (bucket - PenaltyBucket.DOLLARS_1)


def _label_of(bucket: PenaltyBucket) -> str:
    return "pinned" if bucket.pinned else f"{bucket.dollars:.15g}"


_LABELS: Final = {bucket: _label_of(bucket) for bucket in PenaltyBucket}
