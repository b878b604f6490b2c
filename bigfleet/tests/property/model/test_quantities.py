"""Quantities of any kind: reading what was printed, and an oracle in exact fractions."""

import math
import re
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from bigfleet.model import Quantity, QuantityError, QuantityFormat, parse_quantity

FACTORS = {
    **{s: Fraction(10) ** e for s, e in zip("num", (-9, -6, -3), strict=True)},
    "": Fraction(1),
    **{s: Fraction(1000) ** (i + 1) for i, s in enumerate("kMGTPE")},
    **{s + "i": Fraction(1024) ** (i + 1) for i, s in enumerate("KMGTPE")},
    **{f"e{e}": Fraction(10) ** e for e in range(-12, 25)},
}
NUMBERS = st.from_regex(r"[+-]?([0-9]{1,22}(\.[0-9]{0,14})?|\.[0-9]{1,14})", fullmatch=True)
QUANTITIES = st.builds(
    Quantity, st.integers(-(10**30), 10**30), st.sampled_from(list(QuantityFormat))
)


def away_from_zero(amount: Fraction) -> int:
    return math.ceil(amount) if amount >= 0 else math.floor(amount)


@given(NUMBERS, st.sampled_from(sorted(FACTORS)))
def test_a_text_means_its_number_times_its_suffix(number: str, suffix: str) -> None:
    exact = Fraction(re.sub(r"\.$", "", number)) * FACTORS[suffix]
    if suffix.endswith("i"):
        exact = max(min(exact, Fraction(2**63 - 1)), Fraction(1 - 2**63))
    quantity = parse_quantity(number + suffix)
    nano = away_from_zero(exact * 10**9)
    assert quantity.nano == nano
    assert quantity.milli() == away_from_zero(Fraction(nano, 10**6))
    assert quantity.value() == away_from_zero(Fraction(nano, 10**9))


@given(QUANTITIES)
def test_what_is_printed_is_read_back(quantity: Quantity) -> None:
    text = str(quantity)
    # More than 2^63-1 with a binary suffix is possible as a sum, but not as a text.
    if not (text.endswith("i") and abs(quantity.value()) > 2**63 - 1):
        assert parse_quantity(text) == quantity


@given(QUANTITIES)
def test_what_was_read_prints_the_same_again(quantity: Quantity) -> None:
    text = str(quantity)
    # 5000 bytes have no binary suffix to tell that they are bytes, so they come back as 5k.
    if quantity.format is not QuantityFormat.BINARY_SI:
        assert str(parse_quantity(text)) == text


@given(QUANTITIES)
def test_what_is_printed_has_no_fraction_and_no_larger_suffix(quantity: Quantity) -> None:
    match = re.fullmatch(r"(-?[0-9]+)([numkMGTPE]|[KMGTPE]i|e-?[0-9]+)?", str(quantity))
    assert match is not None
    mantissa, suffix = int(match[1]), match[2] or ""
    if suffix not in ("E", "Ei") and mantissa != 0:
        binary = quantity.format is QuantityFormat.BINARY_SI and abs(quantity.nano) >= 1024 * 10**9
        whole = quantity.nano % 10**9 == 0
        assert mantissa % (1024 if binary and whole else 1000) != 0


@given(QUANTITIES, QUANTITIES)
def test_quantities_add_and_compare_as_their_amounts_do(left: Quantity, right: Quantity) -> None:
    assert (left + right).nano == left.nano + right.nano
    assert (left < right) == (left.nano < right.nano)
    assert (left == right) == (left.nano == right.nano)


@given(
    st.one_of(
        st.text(max_size=300),
        st.text(alphabet="0123456789.+-eEinumkKMGTP", max_size=24),
        st.from_regex(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", fullmatch=True),
    )
)
@example("1e" + "9" * 250)
@example("1e-" + "9" * 250)
@example("0" * 256)
def test_a_text_is_a_quantity_or_a_quantity_error_and_nothing_else(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert parse_quantity(str(quantity)) == quantity
