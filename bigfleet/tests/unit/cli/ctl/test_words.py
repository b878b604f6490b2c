"""Times, amounts and names as people read them."""

import pytest

from bigfleet.cli.ctl.render.formats import (
    SECOND,
    ago,
    amount_words,
    condition,
    lasting,
    moment,
    name,
    plural,
    some,
    title,
)
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2, shardread_pb2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7199, "1 h"), (200_000, "2 d")],
)
def test_how_long_is_said_in_the_largest_unit(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_never_is_a_time_too() -> None:
    assert ago(0, 5) == "never"
    assert moment(0) is None
    assert ago(2 * SECOND, 5 * SECOND) == "3 s ago"
    assert moment(1_500_000_000) == "1970-01-01T00:00:01.500Z"


def test_amounts_leave_out_what_is_nothing() -> None:
    assert amount_words({"memory": "16Gi", "cpu": "4", "gpu": "0"}) == "cpu 4, memory 16Gi"
    assert amount_words({"gpu": "0"}) == "nothing"


def test_counts_and_lists_are_short() -> None:
    assert (plural(1, "machine"), plural(2000, "machine")) == ("1 machine", "2,000 machines")
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert some([]) == ""


def test_values_of_enums_lose_what_all_have_in_common() -> None:
    kinds = provider_pb2.CapacityType
    assert title(kinds.Name, provider_pb2.CAPACITY_TYPE_ON_DEMAND, "CAPACITY_TYPE_") == "OnDemand"
    reasons = shardread_pb2.UnmetReason
    assert name(reasons.Name, shardread_pb2.UNMET_REASON_STOCK_OUT, "UNMET_REASON_") == "STOCK_OUT"
    assert name(reasons.Name, reasons.ValueType(999), "UNMET_REASON_") == "999"


def test_requirements_read_as_in_a_manifest() -> None:
    made = capacity_pb2.NodeSelectorRequirement
    assert condition(made(key="pool", operator=made.OPERATOR_IN, values=["a", "b"])) == (
        "pool In [a, b]"
    )
    assert condition(made(key="rack", operator=made.OPERATOR_SAME)) == "rack Same"
    assert condition(made(key="rack", operator=made.Operator.ValueType(77))) == "rack operator 77"
