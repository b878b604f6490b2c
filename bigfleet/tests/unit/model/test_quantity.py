"""Reading, printing, comparing and adding quantities."""

import pytest

from bigfleet.model import (
    Quantity,
    QuantityError,
    QuantityFormat,
    parse_milli,
    parse_quantity,
    quantity_from_milli,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1500Mi", "1500Mi"),
        ("1.5Gi", "1536Mi"),
        ("100000", "100k"),
        ("1e3", "1e3"),
        ("1.5e3", "1500"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        (".5", "500m"),
        ("5.", "5"),
        ("0", "0"),
        ("0Ki", "0"),
        ("-0.000", "0"),
        ("-1500m", "-1500m"),
        ("+3", "3"),
        ("1.500", "1500m"),
    ],
)
def test_a_quantity_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


def test_what_is_finer_than_nano_rounds_away_from_zero() -> None:
    assert parse_quantity("0.0000000001") == Quantity(1)
    assert parse_quantity("-0.0000000001") == Quantity(-1)
    assert parse_quantity("1e-999999999999") == Quantity(1)


def test_a_binary_quantity_stops_at_the_largest_64_bit_integer() -> None:
    assert parse_quantity("8Ei").value() == 2**63 - 1
    assert parse_quantity("-9Ei").value() == -(2**63) + 1


def test_a_decimal_quantity_above_64_bits_stays_exact() -> None:
    assert parse_quantity("9223372036854775808").value() == 2**63


def test_milli_and_value_round_away_from_zero() -> None:
    assert parse_quantity("1.0001").milli() == 1001
    assert parse_quantity("-1.0001").milli() == -1001
    assert parse_quantity("100m").value() == 1
    assert parse_quantity("-100m").value() == -1
    assert parse_quantity("2").value() == 2


def test_quantities_compare_by_amount_however_they_are_written() -> None:
    assert parse_quantity("1Ki") == parse_quantity("1024") == parse_quantity("1.024e3")
    assert len({parse_quantity("1000m"), parse_quantity("1")}) == 1
    assert parse_quantity("1G") < parse_quantity("1Gi")


def test_a_sum_keeps_the_format_of_its_first_amount_that_is_not_nothing() -> None:
    assert str(parse_quantity("512Mi") + parse_quantity("512M")) == "1024288Ki"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1Gi") + parse_quantity("1Gi")) == "2Gi"


def test_a_sum_above_the_largest_suffix_keeps_that_suffix() -> None:
    half = parse_quantity("4Ei")
    assert str(Quantity(half.nano * 512, half.format)) == "2048Ei"


def test_an_amount_in_milli_prints_decimal_or_binary() -> None:
    assert str(quantity_from_milli(15890)) == "15890m"
    assert str(quantity_from_milli(4000)) == "4"
    assert str(quantity_from_milli(60 * 2**30 * 1000, binary=True)) == "60Gi"
    assert str(quantity_from_milli(500, binary=True)) == "500m"
    assert quantity_from_milli(1, binary=True).format is QuantityFormat.BINARY_SI


def test_milli_of_a_text_is_remembered() -> None:
    parse_milli("31337m")
    before = parse_milli.cache_info()
    assert parse_milli("31337m") == 31337
    after = parse_milli.cache_info()
    assert (after.hits, after.maxsize) == (before.hits + 1, 65536)


@pytest.mark.parametrize("text", ["", "abc", "1KiB", "1 Gi", "Ki", ".", "1e", "1e1.5", "１", "1\n"])
def test_a_refusal_names_the_text_and_the_remedy(text: str) -> None:
    with pytest.raises(QuantityError, match="write a number and at most one suffix") as refusal:
        parse_quantity(text)
    assert repr(text) in str(refusal.value)


def test_a_number_too_long_to_be_meant_is_refused_at_once() -> None:
    for text in ("1e999999999", "1" * 300, "9" * 130, "1" + "0" * 126 + "k"):
        with pytest.raises(QuantityError, match=r"128 digits|256"):
            parse_quantity(text)


def test_zero_is_zero_with_any_exponent() -> None:
    assert parse_quantity("0e999999999") == Quantity(0)
