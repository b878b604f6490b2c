"""Mutants on whole lanes: the list of failures is the stored one.

A behaviour that begins or ceases to notice a mistake changes the list; then a person should know.
Made with `python -m mutantkit.lanes` in `conformance/tests/support`.
"""

import json

import pytest

from bigfleet_conformance import Status
from bigfleet_conformance.mutants import Mutant, all_mutants
from mutantkit.judge import judge
from mutantkit.lanes import STORED, failures

EXPECTED = json.loads(STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mutant", all_mutants().values(), ids=lambda mutant: str(mutant.id))
async def test_a_mutant_fails_what_it_failed_before(mutant: Mutant) -> None:
    always, sometimes = (set(EXPECTED[mutant.id][name]) for name in ("always", "sometimes"))
    failed = set(await failures(mutant))
    assert always - failed == set(), "no longer noticed"
    new = failed - always - sometimes
    if new:
        # A stall of half a second hides a transitional state; what is really noticed is so twice.
        report = await judge(mutant.id, tuple(sorted(new)))
        new = {id for id in new if report.status(id) is Status.FAILED}
    assert new == set(), "newly noticed"


def test_what_must_fail_is_part_of_what_always_fails() -> None:
    for mutant in all_mutants().values():
        assert set(mutant.must_fail) <= set(EXPECTED[mutant.id]["always"])
