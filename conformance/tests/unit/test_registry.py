"""The registry is data, and keeps its own rules."""

import re

import pytest

from bigfleet_conformance.mutants import all_mutants, killers
from bigfleet_conformance.registry import (
    ID,
    Area,
    Capability,
    Chapter,
    Profile,
    RegistryError,
    all_behaviours,
    digest,
    select,
)
from bigfleet_conformance.results import required_by

ROWS = list(all_behaviours().values())
BASE = (
    *("B101", "B103", "B104", "B105", "B106", "B107", "B108", "B109"),
    *(f"B{n}" for n in range(201, 216)),
    *("B301", "B302", "B303", *(f"B{n}" for n in range(305, 313))),
    *(f"B{n}" for n in range(401, 410)),
    *(f"B{n}" for n in range(501, 506)),
    *(f"B{n}" for n in range(701, 709)),
    *(f"B{n}" for n in range(801, 808)),
    *(f"B{n}" for n in range(901, 910)),
    *(f"B{n}" for n in range(1001, 1008)),
    *(f"B{n}" for n in range(1101, 1110)),
    *(f"B{n}" for n in range(1201, 1206)),
)


def test_the_ids_are_the_frozen_ones() -> None:
    assert [row.id for row in ROWS] == [*BASE, *(f"B{n}" for n in range(2001, 2040) if n != 2022)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.id))
def test_a_row_is_complete(row: "object") -> None:
    from bigfleet_conformance.registry import Behaviour

    assert isinstance(row, Behaviour)
    assert ID.fullmatch(row.id)
    assert row.title
    assert not row.title.endswith(".")
    assert row.why
    assert row.does
    assert row.passes
    assert row.profiles
    assert set(row.profiles) <= set(Profile)
    assert set(row.needs) <= set(Capability)
    assert re.fullmatch(r"\d(\.\d)?", row.section)


def test_every_test_belongs_to_one_id() -> None:
    assert len({row.test for row in ROWS}) == len(ROWS)


def test_titles_are_different() -> None:
    assert len({row.title for row in ROWS}) == len(ROWS)


def test_there_are_eleven_areas_and_the_additional_ones() -> None:
    base = {row.area for row in ROWS if not row.additional}
    assert len(base) == 11
    assert {row.area for row in ROWS} - base == {Area.ADDITIONAL}


@pytest.mark.parametrize(
    ("profile", "base", "additional"),
    [
        (Profile.CORE, 69, 19),
        (Profile.CLOUD, 69, 19),
        (Profile.BARE_METAL, 66, 18),
        (Profile.SPOT, 69, 19),
        (Profile.FAULT, 8, 7),
        (Profile.DURABLE, 7, 7),
        (Profile.SCALE, 9, 2),
        (Profile.SECURE, 0, 2),
        (Profile.OBSERVABLE, 0, 1),
    ],
)
def test_a_profile_requires_its_rows(profile: Profile, base: int, additional: int) -> None:
    rows = [row for row in ROWS if required_by(row, [profile], "full")]
    assert sum(not row.additional for row in rows) == base
    assert sum(row.additional for row in rows) == additional


def test_the_core_lane_uses_at_most_160_slots() -> None:
    baseline = 30
    assert sum(row.slots for row in ROWS if row.lane == "core") + baseline <= 160


def test_an_id_is_never_used_twice() -> None:
    with pytest.raises(RegistryError, match="B101 is registered twice"):
        Chapter(Area.LIFECYCLE, "3.5").row("B101")(ROWS[0].test)


def test_a_retired_id_is_never_used_again() -> None:
    with pytest.raises(RegistryError, match="B2022 is retired"):
        Chapter(Area.LIFECYCLE, "3.5").row("B2022")(ROWS[0].test)


def test_only_rows_of_the_additions_need_selectors_of_their_own() -> None:
    assert all(row.additional for row in ROWS if row.selectors)


def test_a_row_without_a_reason_is_refused() -> None:
    async def nameless(p: object) -> None:
        """A title.

        Does: something.
        Passes: always.
        """

    with pytest.raises(RegistryError, match="lacks Why"):
        Chapter(Area.LIFECYCLE, "3.5").row("B9999")(nameless)


def test_patterns_choose_and_leave_out() -> None:
    chosen = select(ROWS, ("B3*",), ("B302",))
    assert [row.id for row in chosen][:3] == ["B301", "B303", "B305"]


def test_the_digest_changes_with_a_row() -> None:
    assert digest(ROWS) != digest(ROWS[1:])


def test_there_are_140_mutants_and_every_behaviour_kills_one() -> None:
    assert len(all_mutants()) == 140
    assert all(killers().values())


def test_ranges_of_the_table_are_those_of_the_registry() -> None:
    assert all_mutants()["M009"].must_fail[:3] == ("B301", "B302", "B303")
    assert "B304" not in all_mutants()["M004"].must_fail
