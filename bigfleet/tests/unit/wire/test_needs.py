"""Rows of demand from the wire: what is taken, what is refused, and what goes back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import (
    ModelError,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
)
from bigfleet.wire.needs import (
    MAX_WHOLE,
    need_from_proto,
    need_to_proto,
    profile_from_proto,
    requirement_from_proto,
    requirements_to_proto,
)
from bigfleet_api.v1alpha1 import capacity_pb2 as pb
from rollups import requirement, row

Op = RequirementOperator
KEYS = st.sampled_from(["zone", "pool", "arch"])
VALUES = st.lists(st.text("abc", min_size=1, max_size=2), min_size=1, max_size=3)
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement.of, KEYS, st.sampled_from([Op.IN, Op.NOT_IN, Op.SAME]), VALUES
    ),
    st.builds(
        Requirement.of, KEYS, st.sampled_from([Op.EXISTS, Op.DOES_NOT_EXIST])
    ),
    st.builds(
        lambda key, operator, n: Requirement.of(key, operator, [str(n)]),
        KEYS, st.sampled_from([Op.GT, Op.LT]), st.integers(-5, 5),
    ),
    st.builds(Requirement.of, KEYS, st.just(Op.UNSPECIFIED)),
)  # fmt: skip
PROFILES = st.builds(
    Profile.of,
    st.lists(REQUIREMENTS, max_size=3),
    st.lists(st.builds(Spread, KEYS, st.integers(1, 3), st.sampled_from(SpreadMode)), max_size=2),
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from(PenaltyBucket),
    st.sampled_from(PenaltyBucket),
)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods"]), st.integers(0, MAX_WHOLE * 1000), max_size=3
)
NEEDS = st.builds(
    Need, st.just("c-1"), PROFILES, AMOUNTS, AMOUNTS, st.text("g", max_size=2),
    st.text("s", max_size=2),
)  # fmt: skip


@given(NEEDS)
def test_a_need_comes_back_as_it_was_sent(need: Need) -> None:
    sent = pb.CapacityNeed.FromString(need_to_proto(need).SerializeToString())
    assert need_from_proto(sent, "c-1") == need


def test_requirements_are_brought_into_canonical_form() -> None:
    written = row(
        requirements=[
            requirement("z", 1, "b", "a", "b"),
            requirement("a", 100, "+007"),
            requirement("z", 1, "a", "b"),
        ]
    )
    assert profile_from_proto(written).requirements == (
        Requirement.of("a", Op.GT, ["7"]),
        Requirement.of("z", Op.IN, ["a", "b"]),
    )


@pytest.mark.parametrize("number", [6, 7, 99, 102, -1])
def test_an_operator_outside_the_enum_is_refused(number: int) -> None:
    with pytest.raises(ModelError, match=f"operator {number} does not exist"):
        requirement_from_proto(requirement("zone", number, "a"))


@pytest.mark.parametrize("values", [(), ("1", "2"), ("abc",), ("1.5",), ("",)])
@pytest.mark.parametrize("number", [100, 101])
def test_gt_and_lt_take_exactly_one_integer(number: int, values: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match="exactly one decimal integer"):
        requirement_from_proto(requirement("cores", number, *values))


@pytest.mark.parametrize(
    ("written", "holds"),
    [
        (requirement("zone", 0, "a"), False),
        (requirement("zone", 1), False),
        (requirement("zone", 2), True),
        (requirement("zone", 3, "ignored"), True),
        (requirement("", 3), False),
        (requirement("", 4), True),
    ],
)
def test_what_is_odd_but_has_a_meaning_is_taken(
    written: pb.NodeSelectorRequirement, holds: bool
) -> None:
    assert requirement_from_proto(written).matches({"zone": "a"}) is holds


@pytest.mark.parametrize("field", ["interruption_penalty_bucket", "reclamation_penalty_bucket"])
def test_buckets_end_at_27(field: str) -> None:
    good, bad = row(), row()
    setattr(good, field, 27)
    setattr(bad, field, 28)
    assert PenaltyBucket.PINNED in (
        profile_from_proto(good).interruption,
        profile_from_proto(good).reclamation,
    )
    with pytest.raises(ModelError, match="penalty bucket 28 does not exist"):
        profile_from_proto(bad)


def test_an_unknown_when_unsatisfiable_counts_as_not_stated() -> None:
    written = row()
    written.spread.add(topology_key="zone", max_skew=2, when_unsatisfiable=77)
    assert profile_from_proto(written).spread == (Spread("zone", 2, SpreadMode.UNSPECIFIED),)


def test_a_spread_that_cannot_be_kept_is_read_as_the_nearest_one() -> None:
    written = row()
    written.spread.add(topology_key="zone", max_skew=0, when_unsatisfiable=1)
    written.spread.add(topology_key="", max_skew=1, when_unsatisfiable=1)
    assert profile_from_proto(written).spread == (Spread("zone", 1),)


@pytest.mark.parametrize("text", ["", "four", "1 Gi", "-1", "1e40", "2305843009213693953"])
@pytest.mark.parametrize("field", ["aggregate", "min_unit"])
def test_amounts_that_cannot_be_read_or_kept_are_refused(field: str, text: str) -> None:
    with pytest.raises(ModelError, match="cpu"):
        need_from_proto(row(**{field: {"cpu": text}}), "c-1")  # type: ignore[arg-type]


def test_requirements_are_sent_as_they_stand() -> None:
    sent = requirements_to_proto([Requirement.of("rack", Op.SAME)])
    assert [(r.key, r.operator, list(r.values)) for r in sent] == [("rack", 5, [])]
