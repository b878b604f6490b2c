"""Profiles: canonical form and fingerprints."""

import pytest

from bigfleet.model import (
    NeedError,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadError,
    SpreadMode,
)

EXISTS = Requirement.of("gpu", RequirementOperator.EXISTS)
RACK = Requirement.of("rack", RequirementOperator.SAME)
ZONE = Requirement.of("zone", RequirementOperator.IN, ["a"])


def test_the_order_in_which_things_are_written_does_not_matter() -> None:
    spread = [Spread("zone", 1), Spread("rack", 2)]
    one = Profile.of([ZONE, EXISTS, RACK], spread)
    other = Profile.of([RACK, ZONE, EXISTS, ZONE], [*reversed(spread), spread[0]])
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert [spread.key for spread in one.spread] == ["rack", "zone"]


def test_a_fingerprint_is_32_hex_characters() -> None:
    assert len(Profile.of().fingerprint) == 32
    assert set(Profile.of([ZONE]).fingerprint) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "changed",
    [
        Profile.of([ZONE], priority=1),
        Profile.of([ZONE], interruption=PenaltyBucket.ZERO),
        Profile.of([ZONE], reclamation=PenaltyBucket.ZERO),
    ],
)
def test_priority_and_penalties_change_the_fingerprint_but_not_the_shape(changed: Profile) -> None:
    plain = Profile.of([ZONE])
    assert changed.fingerprint != plain.fingerprint
    assert changed.shape_fingerprint == plain.shape_fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        Profile.of([ZONE, EXISTS]),
        Profile.of([Requirement.of("zone", RequirementOperator.NOT_IN, ["a"])]),
        Profile.of([Requirement.of("zone", RequirementOperator.IN, ["a", "b"])]),
        Profile.of([ZONE], [Spread("zone", 1)]),
    ],
)
def test_requirements_and_spread_change_both(changed: Profile) -> None:
    plain = Profile.of([ZONE])
    assert changed.fingerprint != plain.fingerprint
    assert changed.shape_fingerprint != plain.shape_fingerprint


def test_every_part_of_a_spread_counts() -> None:
    spreads = [
        Spread("zone", 1),
        Spread("zone", 2),
        Spread("rack", 1),
        Spread("zone", 1, SpreadMode.SCHEDULE_ANYWAY),
        Spread("zone", 1, SpreadMode.UNSPECIFIED),
    ]
    assert len({Profile.of(spread=[spread]).shape_fingerprint for spread in spreads}) == 5


def test_neighbouring_texts_do_not_run_into_each_other() -> None:
    one = Profile.of([Requirement.of("a", RequirementOperator.IN, ["bc", "d"])])
    other = Profile.of([Requirement.of("a", RequirementOperator.IN, ["b", "cd"])])
    assert one.fingerprint != other.fingerprint


def test_a_shape_is_never_taken_for_a_profile() -> None:
    assert Profile.of().fingerprint != Profile.of().shape_fingerprint


def test_a_profile_tells_its_wish_for_one_place_apart_from_the_rest() -> None:
    gang = Profile.of([ZONE, RACK], priority=7)
    assert gang.same == (RACK,)
    assert gang.without_same() == Profile.of([ZONE], priority=7)
    assert gang.without_same().same == ()


def test_a_profile_without_such_a_wish_stays_itself() -> None:
    plain = Profile.of([ZONE])
    assert plain.without_same() is plain


def test_a_fingerprint_is_computed_once() -> None:
    profile = Profile.of([ZONE])
    assert profile.fingerprint is profile.fingerprint


def test_a_lone_surrogate_does_not_break_a_fingerprint() -> None:
    assert len(Profile.of([Requirement.of("\ud800", RequirementOperator.EXISTS)]).fingerprint) == 32


@pytest.mark.parametrize("priority", [-(2**31) - 1, 2**31])
def test_a_priority_fits_in_32_bits(priority: int) -> None:
    with pytest.raises(NeedError, match="PriorityClass"):
        Profile.of(priority=priority)


def test_a_spread_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(SpreadError, match="use 1 or more"):
        Spread("zone", 0)
    with pytest.raises(SpreadError, match="name the topology label"):
        Spread("", 1)
