"""Requirements: canonical form, refusals, matching."""

import pytest

from bigfleet.model import Requirement, RequirementError, RequirementOperator, matches_all


def test_values_are_sorted_and_none_is_there_twice() -> None:
    assert Requirement.of("zone", RequirementOperator.IN, ["b", "a", "b"]).values == ("a", "b")
    assert Requirement.of("rack", RequirementOperator.SAME, ["2", "1"]).values == ("1", "2")


@pytest.mark.parametrize("text", ["7", "+7", "007", "+0007"])
def test_an_integer_bound_is_kept_in_its_plainest_writing(text: str) -> None:
    assert Requirement.of("cores", RequirementOperator.GT, [text]) == Requirement.of(
        "cores", RequirementOperator.GT, ["7"]
    )


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (RequirementOperator.IN, []),
        (RequirementOperator.NOT_IN, []),
        (RequirementOperator.EXISTS, ["a"]),
        (RequirementOperator.DOES_NOT_EXIST, ["a"]),
        (RequirementOperator.GT, []),
        (RequirementOperator.GT, ["1", "2"]),
        (RequirementOperator.GT, ["1", "1"]),
        (RequirementOperator.GT, ["abc"]),
        (RequirementOperator.LT, ["1.5"]),
        (RequirementOperator.LT, [""]),
        (RequirementOperator.LT, ["٣"]),
        (RequirementOperator.LT, ["9223372036854775808"]),
        (RequirementOperator.LT, ["1" * 5000]),
    ],
)
def test_operator_and_values_must_fit_together(
    operator: RequirementOperator, values: list[str]
) -> None:
    with pytest.raises(RequirementError, match=rf"^cores {operator.value}: "):
        Requirement.of("cores", operator, values)


def test_a_requirement_needs_a_key() -> None:
    with pytest.raises(RequirementError, match="name the label"):
        Requirement.of("", RequirementOperator.EXISTS)


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(RequirementError, match="give a list"):
        Requirement.of("zone", RequirementOperator.IN, "abc")


@pytest.mark.parametrize(
    ("operator", "values", "holds_for"),
    [
        (RequirementOperator.IN, ["4", "x"], {"4", "x"}),
        (RequirementOperator.NOT_IN, ["4", "x"], {None, "", "5", "-1", "05"}),
        (RequirementOperator.EXISTS, [], {"", "4", "5", "-1", "05", "x"}),
        (RequirementOperator.DOES_NOT_EXIST, [], {None}),
        (RequirementOperator.SAME, [], {"", "4", "5", "-1", "05", "x"}),
        (RequirementOperator.SAME, ["4"], {"4"}),
        (RequirementOperator.GT, ["4"], {"5", "05"}),
        (RequirementOperator.LT, ["5"], {"4", "-1"}),
        (RequirementOperator.UNSPECIFIED, [], set()),
        (RequirementOperator.UNSPECIFIED, ["4"], set()),
    ],
)
def test_each_operator_holds_for_exactly_these_labels(
    operator: RequirementOperator, values: list[str], holds_for: set[str | None]
) -> None:
    requirement = Requirement.of("label", operator, values)
    candidates = (None, "", "4", "5", "-1", "05", "x")
    assert {value for value in candidates if requirement.matches_value(value)} == holds_for
    for value in candidates:
        labels = {"other": "4"} if value is None else {"label": value}
        assert requirement.matches(labels) == (value in holds_for)


def test_a_label_that_is_no_64_bit_integer_is_neither_greater_nor_smaller() -> None:
    for text in ("9223372036854775808", "-9223372036854775809", "1e3", "1_0", " 5", "5\n"):
        assert not Requirement.of("cores", RequirementOperator.GT, ["-1"]).matches_value(text)
        assert not Requirement.of("cores", RequirementOperator.LT, ["1"]).matches_value(text)
    assert Requirement.of("cores", RequirementOperator.GT, ["-1"]).matches_value(
        "9223372036854775807"
    )


def test_all_requirements_must_hold() -> None:
    wanted = [
        Requirement.of("a", RequirementOperator.EXISTS),
        Requirement.of("b", RequirementOperator.IN, ["1"]),
    ]
    assert matches_all(wanted, {"a": "", "b": "1"})
    assert not matches_all(wanted, {"a": ""})
    assert matches_all([], {})


def test_requirements_have_an_order_by_key_operator_values() -> None:
    ordered = [
        Requirement.of("a", RequirementOperator.DOES_NOT_EXIST),
        Requirement.of("a", RequirementOperator.IN, ["1"]),
        Requirement.of("a", RequirementOperator.IN, ["1", "2"]),
        Requirement.of("a", RequirementOperator.IN, ["2"]),
        Requirement.of("b", RequirementOperator.EXISTS),
    ]
    assert sorted([*ordered[2:], *ordered[:2]]) == ordered


def test_a_refusal_is_one_line_whatever_the_key_is() -> None:
    with pytest.raises(RequirementError, match=r"^'a\\nb' Gt: takes exactly one"):
        Requirement.of("a\nb", RequirementOperator.GT, ["x"])
