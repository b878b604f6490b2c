"""Buckets, requirements, profiles, resources and rows, against naive oracles."""

import math
from decimal import Decimal
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import (
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    aggregate_rows,
    bucket_of,
    is_uniform_multiple,
    matches_all,
)
from plain_rules import total_order_key

KEYS = st.sampled_from(["zone", "rack", "cores", "größe"])
TEXTS = st.sampled_from(["", "a", "b", "4", "5", "05", "-3", "x1", "9" * 20])
INTEGERS = st.integers(-(2**63), 2**63 - 1).map(str) | st.sampled_from(["4", "5"])
LABELS = st.dictionaries(KEYS, TEXTS | INTEGERS, max_size=4)
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 12))


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(list(RequirementOperator)))
    match operator:
        case RequirementOperator.EXISTS | RequirementOperator.DOES_NOT_EXIST:
            values = []
        case RequirementOperator.GT | RequirementOperator.LT:
            values = [draw(INTEGERS)]
        case RequirementOperator.IN | RequirementOperator.NOT_IN:
            values = draw(st.lists(TEXTS, min_size=1, max_size=3))
        case _:
            values = draw(st.lists(TEXTS, max_size=3))
    return Requirement.of(draw(KEYS), operator, values)


SPREADS = st.builds(Spread, KEYS, st.integers(1, 3), st.sampled_from(list(SpreadMode)))
BUCKETS = st.sampled_from(list(PenaltyBucket))
PROFILES = st.builds(
    Profile.of,
    st.lists(requirements(), max_size=4),
    st.lists(SPREADS, max_size=3),
    st.integers(-2, 2),
    BUCKETS,
    BUCKETS,
)


def naive_bucket(dollars: float | Decimal) -> int:
    """Walk the bounds of the table from the cheapest up."""
    bounds = [0.0, 0.5, *(2.0**k for k in range(24))]
    for number, bound in enumerate(bounds, start=1):
        if dollars <= bound:
            return number
    return 27


def as_integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    """The table of operators, row by row."""
    present = requirement.key in labels
    value = labels.get(requirement.key, "")
    listed = present and value in requirement.values
    number = as_integer(value) if present else None
    bounded = number is not None and requirement.operator in (
        RequirementOperator.GT,
        RequirementOperator.LT,
    )
    bound = int(requirement.values[0]) if bounded else 0
    return {
        RequirementOperator.IN: listed,
        RequirementOperator.NOT_IN: not listed,
        RequirementOperator.EXISTS: present,
        RequirementOperator.DOES_NOT_EXIST: not present,
        RequirementOperator.SAME: present and (listed or requirement.values == ()),
        RequirementOperator.GT: bounded and number is not None and number > bound,
        RequirementOperator.LT: bounded and number is not None and number < bound,
        RequirementOperator.UNSPECIFIED: False,
    }[requirement.operator]


@given(
    st.floats(allow_nan=False)
    | st.floats(0, 10)
    | st.sampled_from([0.5, *(2.0**k for k in range(24))]).flatmap(
        lambda bound: st.sampled_from(
            [bound, math.nextafter(bound, math.inf), math.nextafter(bound, 0.0)]
        )
    )
    | st.decimals(-1, 9_000_000, places=6)
)
def test_a_bucket_is_the_first_whose_bound_covers_the_penalty(dollars: float | Decimal) -> None:
    bucket = bucket_of(dollars)
    assert bucket == naive_bucket(dollars)
    if 0 <= dollars <= 8_388_608:
        assert bucket_of(bucket.dollars) == bucket


@given(requirements(), LABELS)
def test_a_requirement_holds_as_the_table_of_operators_says(
    requirement: Requirement, labels: dict[str, str]
) -> None:
    assert requirement.matches(labels) == holds(requirement, labels)
    assert requirement.matches_value(labels.get(requirement.key)) == holds(requirement, labels)


@given(st.lists(requirements(), max_size=4), LABELS)
def test_requirements_hold_together_when_each_does(
    wanted: list[Requirement], labels: dict[str, str]
) -> None:
    assert matches_all(wanted, labels) == (not any(not holds(one, labels) for one in wanted))


@given(PROFILES, st.randoms(use_true_random=False), st.data())
def test_a_fingerprint_does_not_depend_on_the_order_of_writing(
    profile: Profile, random: Random, data: st.DataObject
) -> None:
    written = list(profile.requirements)
    spread = list(profile.spread)
    random.shuffle(written)
    random.shuffle(spread)
    shuffled = [
        Requirement.of(one.key, one.operator, data.draw(st.permutations(one.values)))
        for one in written
    ]
    again = Profile.of(
        shuffled, spread, profile.priority, profile.interruption, profile.reclamation
    )
    assert again == profile
    assert again.fingerprint == profile.fingerprint
    assert again.shape_fingerprint == profile.shape_fingerprint


@given(PROFILES, PROFILES)
def test_fingerprints_are_equal_exactly_for_equal_profiles(left: Profile, right: Profile) -> None:
    assert (left.fingerprint == right.fingerprint) == (left == right)
    same_shape = (left.requirements, left.spread) == (right.requirements, right.spread)
    assert (left.shape_fingerprint == right.shape_fingerprint) == same_shape


@given(PROFILES)
def test_without_same_only_same_is_gone(profile: Profile) -> None:
    plain = profile.without_same()
    assert sorted((*plain.requirements, *profile.same)) == list(profile.requirements)
    assert plain == Profile.of(
        plain.requirements,
        profile.spread,
        profile.priority,
        profile.interruption,
        profile.reclamation,
    )


@given(AMOUNTS, AMOUNTS)
def test_uniform_means_one_ratio_in_every_dimension(
    aggregate: dict[str, int], unit: dict[str, int]
) -> None:
    names = [n for n in {*aggregate, *unit} if aggregate.get(n, 0) or unit.get(n, 0)]
    ratios = {Fraction(aggregate.get(n, 0), unit[n]) if unit.get(n, 0) else None for n in names}
    expected = None
    if len(ratios) == 1:
        (ratio,) = ratios
        if ratio is not None and ratio.denominator == 1 and ratio >= 1:
            expected = int(ratio)
    assert is_uniform_multiple(aggregate, unit) == expected


@st.composite
def rows(draw: st.DrawFn) -> list[Need]:
    shapes = draw(st.lists(PROFILES, min_size=1, max_size=3))
    return draw(
        st.lists(
            st.builds(
                Need,
                st.sampled_from(["c-0", "c-1"]),
                st.sampled_from(shapes),
                AMOUNTS,
                AMOUNTS,
                st.sampled_from(["", "g"]),
                st.sampled_from(["", "s"]),
                st.integers(0, 9),
                st.integers(0, 9),
            ),
            max_size=8,
        )
    )


@given(rows(), st.randoms(use_true_random=False))
def test_added_rows_do_not_depend_on_their_order(given_rows: list[Need], random: Random) -> None:
    added = aggregate_rows(given_rows)
    shuffled = list(given_rows)
    random.shuffle(shuffled)
    assert sorted(aggregate_rows(shuffled), key=total_order_key) == sorted(
        added, key=total_order_key
    )
    assert aggregate_rows(added) == added
    identities = [(row.cluster, row.key) for row in added]
    assert len(set(identities)) == len(identities)


@given(rows())
def test_adding_rows_loses_nothing(given_rows: list[Need]) -> None:
    added = aggregate_rows(given_rows)
    for name in ("cpu", "memory", "gpu"):
        total = sum(row.aggregate.get(name, 0) for row in given_rows)
        assert sum(row.aggregate.get(name, 0) for row in added) == total
    for row in added:
        members = [r for r in given_rows if (r.cluster, r.key) == (row.cluster, row.key)]
        for name in row.min_unit:
            assert row.min_unit[name] == max(r.min_unit.get(name, 0) for r in members)
        assert row.arrival_ns == min(r.arrival_ns for r in members)
        assert row.shrunk_at == max(r.shrunk_at for r in members)
