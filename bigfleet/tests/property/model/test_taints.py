"""Tolerations against an oracle that writes out every taint there is."""

from collections.abc import Iterable
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Profile, Taint, TaintEffect, Toleration, admits, untolerated

KEYS, VALUES = ["gpu", "spot", "team"], ["", "a", "b"]
EVERY_TAINT = [Taint(*parts) for parts in product(KEYS, VALUES, TaintEffect)]
TAINTS = st.lists(st.sampled_from(EVERY_TAINT), max_size=4)
EFFECTS = st.sampled_from(["", *TaintEffect])
_KEY, _ANY_KEY, _VALUE = map(st.sampled_from, (KEYS, ["", *KEYS], VALUES))
TOLERATIONS = st.one_of(
    st.builds(Toleration.of, _KEY, st.just("Equal"), _VALUE, EFFECTS),
    st.builds(Toleration.of, _ANY_KEY, st.just("Exists"), st.just(""), EFFECTS),
)


def everything_covered(toleration: Toleration) -> set[Taint]:
    """The taints of the small world that a toleration covers, by the table of Kubernetes."""
    keys = [toleration.key] if toleration.key else KEYS
    values = [toleration.value] if toleration.operator == "Equal" else VALUES
    effects = [TaintEffect(toleration.effect)] if toleration.effect else list(TaintEffect)
    return {Taint(*parts) for parts in product(keys, values, effects)}


def covered(tolerations: Iterable[Toleration]) -> set[Taint]:
    return {taint for each in tolerations for taint in everything_covered(each)}


@given(TAINTS, st.lists(TOLERATIONS, max_size=3))
def test_what_is_not_tolerated_is_what_no_toleration_writes_out(
    taints: list[Taint], tolerations: list[Toleration]
) -> None:
    left = [taint for taint in taints if taint not in covered(tolerations)]
    assert untolerated(taints, tolerations) == left
    assert admits(taints, tolerations) is not any(
        taint.effect in ("NoSchedule", "NoExecute") for taint in left
    )


@given(TAINTS, st.lists(TOLERATIONS, max_size=3), TOLERATIONS)
def test_one_toleration_more_never_takes_a_machine_away(
    taints: list[Taint], tolerations: list[Toleration], more: Toleration
) -> None:
    assert admits(taints, [*tolerations, more]) or not admits(taints, tolerations)


@given(st.lists(TOLERATIONS, max_size=4), st.lists(TOLERATIONS, max_size=4))
def test_profiles_have_one_fingerprint_exactly_where_their_tolerations_are_the_same(
    some: list[Toleration], others: list[Toleration]
) -> None:
    one, other = Profile.of(tolerations=some), Profile.of(tolerations=others)
    assert (one.fingerprint == other.fingerprint) is (set(some) == set(others))
    assert (one.shape_fingerprint == other.shape_fingerprint) is (set(some) == set(others))
