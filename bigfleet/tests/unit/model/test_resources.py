"""Amounts per resource name."""

import pytest

from bigfleet.model import (
    QuantityError,
    add,
    format_resources,
    is_uniform_multiple,
    maximum,
    parse_resources,
)

GI = 2**30 * 1000


def test_texts_become_milli_units() -> None:
    assert parse_resources({"cpu": "15890m", "memory": "60Gi", "nvidia.com/gpu": "8"}) == {
        "cpu": 15890,
        "memory": 60 * GI,
        "nvidia.com/gpu": 8000,
    }


def test_a_zero_stays_in_the_map() -> None:
    assert parse_resources({"cpu": "0"}) == {"cpu": 0}


@pytest.mark.parametrize("text", ["four", "-1"])
def test_a_refusal_says_where_and_which_resource(text: str) -> None:
    with pytest.raises(QuantityError, match=rf"need 3 min_unit: resource 'cpu': '{text}'"):
        parse_resources({"memory": "1Gi", "cpu": text}, where="need 3 min_unit")


def test_without_a_place_the_resource_is_named_alone() -> None:
    with pytest.raises(QuantityError, match=r"^resource 'cpu'"):
        parse_resources({"cpu": ""})


def test_memory_and_storage_print_with_binary_suffixes() -> None:
    amounts = {"memory": 60 * GI, "cpu": 4000, "hugepages-2Mi": GI, "ephemeral-storage": GI}
    assert format_resources(amounts) == {
        "cpu": "4",
        "ephemeral-storage": "1Gi",
        "hugepages-2Mi": "1Gi",
        "memory": "60Gi",
    }
    assert list(format_resources(amounts)) == sorted(amounts)


def test_sum_and_maximum_cover_every_dimension_of_either() -> None:
    left, right = {"cpu": 1, "memory": 5}, {"cpu": 3, "gpu": 2}
    assert add(left, right) == {"cpu": 4, "memory": 5, "gpu": 2}
    assert maximum(left, right) == {"cpu": 3, "memory": 5, "gpu": 2}
    assert (left, right) == ({"cpu": 1, "memory": 5}, {"cpu": 3, "gpu": 2})


@pytest.mark.parametrize(
    ("aggregate", "unit", "count"),
    [
        ({"cpu": 12, "memory": 6}, {"cpu": 4, "memory": 2}, 3),
        ({"cpu": 4}, {"cpu": 4}, 1),
        ({"cpu": 12, "memory": 6}, {"cpu": 4, "memory": 3}, None),
        ({"cpu": 13}, {"cpu": 4}, None),
        ({"cpu": 3}, {"cpu": 4}, None),
        ({"cpu": 12, "gpu": 1}, {"cpu": 4}, None),
        ({"cpu": 12}, {"cpu": 4, "gpu": 1}, None),
        ({"cpu": 12, "gpu": 0}, {"cpu": 4}, 3),
        ({"cpu": 12}, {"cpu": 4, "gpu": 0}, 3),
        ({"cpu": 12}, {}, None),
        ({}, {}, None),
        ({}, {"cpu": 4}, None),
        ({"cpu": 0}, {"cpu": 0}, None),
    ],
)
def test_an_aggregate_is_uniform_when_one_number_of_units_makes_it(
    aggregate: dict[str, int], unit: dict[str, int], count: int | None
) -> None:
    assert is_uniform_multiple(aggregate, unit) == count
