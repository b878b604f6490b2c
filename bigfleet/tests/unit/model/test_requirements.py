"""Requirements: canonical form, refusals, matching."""

import pytest

from bigfleet.model import Operator, Requirement, RequirementError, matches_all


def test_values_are_sorted_and_none_is_there_twice() -> None:
    assert Requirement.of("zone", Operator.IN, ["b", "a", "b"]).values == ("a", "b")
    assert Requirement.of("rack", Operator.SAME, ["2", "1"]).values == ("1", "2")


@pytest.mark.parametrize("text", ["7", "+7", "007", "+0007"])
def test_an_integer_bound_is_kept_in_its_plainest_writing(text: str) -> None:
    assert Requirement.of("cores", Operator.GT, [text]) == Requirement.of(
        "cores", Operator.GT, ["7"]
    )


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (Operator.IN, []),
        (Operator.NOT_IN, []),
        (Operator.EXISTS, ["a"]),
        (Operator.DOES_NOT_EXIST, ["a"]),
        (Operator.GT, []),
        (Operator.GT, ["1", "2"]),
        (Operator.GT, ["1", "1"]),
        (Operator.GT, ["abc"]),
        (Operator.LT, ["1.5"]),
        (Operator.LT, [""]),
        (Operator.LT, ["٣"]),
        (Operator.LT, ["9223372036854775808"]),
        (Operator.LT, ["1" * 5000]),
    ],
)
def test_operator_and_values_must_fit_together(operator: Operator, values: list[str]) -> None:
    with pytest.raises(RequirementError, match=rf"^cores {operator.value}: "):
        Requirement.of("cores", operator, values)


def test_a_requirement_needs_a_key() -> None:
    with pytest.raises(RequirementError, match="name the label"):
        Requirement.of("", Operator.EXISTS)


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(RequirementError, match="give a list"):
        Requirement.of("zone", Operator.IN, "abc")


@pytest.mark.parametrize(
    ("operator", "values", "holds_for"),
    [
        (Operator.IN, ["4", "x"], {"4", "x"}),
        (Operator.NOT_IN, ["4", "x"], {None, "", "5", "-1", "05"}),
        (Operator.EXISTS, [], {"", "4", "5", "-1", "05", "x"}),
        (Operator.DOES_NOT_EXIST, [], {None}),
        (Operator.SAME, [], {"", "4", "5", "-1", "05", "x"}),
        (Operator.SAME, ["4"], {"4"}),
        (Operator.GT, ["4"], {"5", "05"}),
        (Operator.LT, ["5"], {"4", "-1"}),
        (Operator.UNSPECIFIED, [], set()),
        (Operator.UNSPECIFIED, ["4"], set()),
    ],
)
def test_each_operator_holds_for_exactly_these_labels(
    operator: Operator, values: list[str], holds_for: set[str | None]
) -> None:
    requirement = Requirement.of("label", operator, values)
    candidates = (None, "", "4", "5", "-1", "05", "x")
    assert {value for value in candidates if requirement.matches_value(value)} == holds_for
    for value in candidates:
        labels = {"other": "4"} if value is None else {"label": value}
        assert requirement.matches(labels) == (value in holds_for)


def test_a_label_that_is_no_64_bit_integer_is_neither_greater_nor_smaller() -> None:
    for text in ("9223372036854775808", "-9223372036854775809", "1e3", "1_0", " 5", "5\n"):
        assert not Requirement.of("cores", Operator.GT, ["-1"]).matches_value(text)
        assert not Requirement.of("cores", Operator.LT, ["1"]).matches_value(text)
    assert Requirement.of("cores", Operator.GT, ["-1"]).matches_value("9223372036854775807")


def test_all_requirements_must_hold() -> None:
    wanted = [Requirement.of("a", Operator.EXISTS), Requirement.of("b", Operator.IN, ["1"])]
    assert matches_all(wanted, {"a": "", "b": "1"})
    assert not matches_all(wanted, {"a": ""})
    assert matches_all([], {})


def test_requirements_have_an_order_by_key_operator_values() -> None:
    ordered = [
        Requirement.of("a", Operator.DOES_NOT_EXIST),
        Requirement.of("a", Operator.IN, ["1"]),
        Requirement.of("a", Operator.IN, ["1", "2"]),
        Requirement.of("a", Operator.IN, ["2"]),
        Requirement.of("b", Operator.EXISTS),
    ]
    assert sorted([*ordered[2:], *ordered[:2]]) == ordered


def test_a_refusal_is_one_line_whatever_the_key_is() -> None:
    with pytest.raises(RequirementError, match=r"^'a\\nb' Gt: takes exactly one"):
        Requirement.of("a\nb", Operator.GT, ["x"])
