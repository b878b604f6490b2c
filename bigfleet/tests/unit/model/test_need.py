"""Needs: identity, addition of rows, the total order."""

import random

import pytest

from bigfleet.model import (
    Need,
    NeedError,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    aggregate_rows,
)
from plain_rules import total_order_key


def need(
    cluster: str = "c-000",
    profile: Profile | None = None,
    cpu: int = 4000,
    *,
    unit: int = 1000,
    group: str = "",
    size_class: str = "",
    arrival_ns: int = 0,
    shrunk_at: int = 0,
) -> Need:
    return Need(
        cluster,
        profile or Profile.of(),
        {"cpu": cpu},
        {"cpu": unit},
        group,
        size_class,
        arrival_ns,
        shrunk_at,
    )


def test_rows_of_one_identity_are_added() -> None:
    rows = [
        Need("c", Profile.of(), {"cpu": 4, "memory": 8}, {"cpu": 2, "memory": 1}, arrival_ns=5),
        Need(
            "c", Profile.of(), {"cpu": 3, "gpu": 1}, {"cpu": 3, "gpu": 1}, arrival_ns=3, shrunk_at=9
        ),
    ]
    assert aggregate_rows(rows) == [
        Need(
            "c",
            Profile.of(),
            {"cpu": 7, "memory": 8, "gpu": 1},
            {"cpu": 3, "memory": 1, "gpu": 1},
            arrival_ns=3,
            shrunk_at=9,
        )
    ]


def test_rows_that_differ_in_identity_stay_apart_and_in_place() -> None:
    rows = [
        need(size_class="s"),
        need(group="g"),
        need(),
        need("c-001"),
        need(profile=Profile.of(priority=1)),
    ]
    assert aggregate_rows(rows) == rows


def test_priority_and_penalties_do_not_change_what_a_stamp_must_say() -> None:
    low = need(group="g")
    high = need(
        profile=Profile.of(priority=9, interruption=PenaltyBucket.PINNED),
        group="g",
        size_class="large",
    )
    assert low.stamp_key == high.stamp_key == ("c-000", Profile.of().shape_fingerprint, "g")
    assert low.key != high.key
    assert high.key == (high.profile.fingerprint, "g", "large")


def test_the_total_order_goes_by_each_rule_in_turn() -> None:
    zero, dollar = PenaltyBucket.ZERO, PenaltyBucket.DOLLARS_1
    shapes = sorted(
        (Profile.of([Requirement.of(key, RequirementOperator.EXISTS)]) for key in "ab"),
        key=lambda profile: profile.fingerprint,
    )
    ordered = [
        need("z", Profile.of(priority=2)),
        need("z", Profile.of(priority=1, interruption=dollar)),
        need("z", Profile.of(priority=1, interruption=zero, reclamation=dollar)),
        need("z", Profile.of(priority=1, interruption=zero, reclamation=zero)),
        need("z", Profile.of(), arrival_ns=1),
        need("Z", shapes[0], arrival_ns=2),
        need("a", shapes[0], arrival_ns=2),
        need("a", shapes[1], arrival_ns=2, group=""),
        need("a", shapes[1], arrival_ns=2, group="g", size_class=""),
        need("a", shapes[1], arrival_ns=2, group="g", size_class="s"),
        need("a", Profile.of(priority=-1)),
    ]
    shuffled = list(ordered)
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=total_order_key) == ordered


def test_a_need_for_less_than_nothing_is_refused() -> None:
    with pytest.raises(NeedError, match=r"'c-000' asks for -1 milli of 'cpu': use zero or more"):
        need(cpu=-1)
    with pytest.raises(NeedError, match="use zero or more"):
        need(unit=-1)


def test_a_need_can_be_in_a_set() -> None:
    assert len({need(), need(), need(group="g")}) == 2
