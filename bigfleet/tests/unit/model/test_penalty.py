"""Penalty buckets: rounding, worth, labels."""

import math
from decimal import Decimal

import pytest

from bigfleet.model import PenaltyBucket, PenaltyError, bucket_from_int, bucket_of

LABELS = ["0", "0", "0.5", *(str(2**k) for k in range(24)), "pinned"]


@pytest.mark.parametrize(
    ("dollars", "number"),
    [
        (None, 0),
        (-3, 1),
        (0, 1),
        (0.0, 1),
        (5e-324, 2),
        (0.5, 2),
        (0.51, 3),
        (1, 3),
        (1.01, 4),
        (2, 4),
        (3, 5),
        (8388607.5, 26),
        (8388608, 26),
        (8388608.01, 27),
        (math.inf, 27),
        (-math.inf, 1),
        (Decimal("0.500000000000000000000000001"), 3),
        ("0.51", 3),
        ("500m", 2),
        ("16", 7),
        ("1k", 13),
        ("inf", 27),
    ],
)
def test_a_raw_penalty_rounds_up_to_its_bucket(
    dollars: float | Decimal | str | None, number: int
) -> None:
    assert bucket_of(dollars) == number


@pytest.mark.parametrize("dollars", [math.nan, Decimal("NaN"), Decimal("sNaN"), "NaN", "", "much"])
def test_what_is_no_number_has_no_bucket(dollars: float | Decimal | str) -> None:
    with pytest.raises(PenaltyError, match="is not a number"):
        bucket_of(dollars)


def test_labels_are_the_dollar_values_and_absent_reads_zero() -> None:
    assert [bucket.label for bucket in PenaltyBucket] == LABELS


def test_a_bucket_is_worth_its_upper_bound() -> None:
    worth = [0.0, 0.0, 0.5, *(float(2**k) for k in range(24)), math.inf]
    assert [bucket.dollars for bucket in PenaltyBucket] == worth
    assert PenaltyBucket.UNSPECIFIED.micro == PenaltyBucket.ZERO.micro == 0
    assert PenaltyBucket.HALF_DOLLAR.micro == 500_000
    assert PenaltyBucket.DOLLARS_1.micro == 1_000_000
    assert PenaltyBucket.DOLLARS_8388608.micro == 8_388_608_000_000


def test_pinned_has_no_finite_worth() -> None:
    assert [bucket for bucket in PenaltyBucket if bucket.pinned] == [PenaltyBucket.PINNED]
    with pytest.raises(PenaltyError, match="check `pinned`"):
        _ = PenaltyBucket.PINNED.micro


def test_the_name_of_a_bucket_is_its_bound() -> None:
    for bucket in PenaltyBucket:
        if bucket.name.startswith("DOLLARS_"):
            assert bucket.dollars == int(bucket.name.removeprefix("DOLLARS_"))


def test_every_number_of_the_wire_is_a_bucket_and_no_other() -> None:
    assert [bucket_from_int(number) for number in range(28)] == list(PenaltyBucket)
    for number in (-1, 28):
        with pytest.raises(PenaltyError, match=rf"bucket {number} does not exist: use 0 .* to 27"):
            bucket_from_int(number)
