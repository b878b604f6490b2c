"""Every mutant dies by the behaviours named for it, and the provider without the patch lives."""

import pytest

from bigfleet_conformance import Status, all_behaviours
from bigfleet_conformance.mutants import Mutant, all_mutants, killers
from mutantkit import PATCHES
from mutantkit.judge import BEYOND_65536, SMALL_LARGE, UNPATCHED, judge, of_tls

GROUPS = 8


@pytest.mark.parametrize("mutant", all_mutants().values(), ids=lambda mutant: str(mutant.id))
async def test_a_mutant_dies(mutant: Mutant) -> None:
    seeds = BEYOND_65536 if mutant.id == "M110" else SMALL_LARGE
    report = await judge(mutant.id, mutant.must_fail, large_seed=seeds)
    survived = {
        id: f"{report.status(id)}: {report.behaviour(id)['reason']}"
        for id in mutant.must_fail
        if report.status(id) is not Status.FAILED
    }
    assert not survived, f"{mutant.id} ({mutant.wrong}) survives {survived}"


@pytest.mark.parametrize("group", [*range(GROUPS), "tls"])
async def test_the_provider_without_a_patch_passes_in_the_same_setting(group: int | str) -> None:
    ids = tuple(
        id
        for n, id in enumerate(all_behaviours())
        if (group == "tls" if of_tls(id) else n % GROUPS == group)
    )
    report = await judge(UNPATCHED, ids)
    wrong = {id: report.behaviour(id)["reason"] for id in ids if report.status(id) != "passed"}
    assert wrong == {}


def test_every_mutant_of_the_table_is_built_and_no_other() -> None:
    assert sorted(PATCHES) == sorted(all_mutants())


def test_every_behaviour_kills_a_mutant() -> None:
    assert [id for id, mutants in killers().items() if not mutants] == []
