"""The engine's transcripts: every page says what the engine decides today."""

import pytest

from transcripts import write
from transcripts.fleet import Scenario
from transcripts.play import play
from transcripts.render import merged, page

SCENARIOS = [scenario for _, group in write.GROUPS for scenario in group]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_a_page_says_what_the_engine_decides(scenario: Scenario) -> None:
    written = (write.FOLDER / f"{scenario.name}.md").read_text(encoding="utf-8")
    assert written == page(scenario), "run make transcripts"


def test_the_index_and_these_pages_are_all_that_the_folder_holds() -> None:
    assert write.main(["--check"]) == 0


def test_at_least_twenty_ideas_have_a_page_of_their_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 20


def test_a_scenario_plays_the_same_way_twice() -> None:
    for scenario in SCENARIOS:
        once, again = ([cycle.plan.digest() for cycle in play(scenario)] for _ in range(2))
        assert once == again


def test_rows_that_differ_in_the_machine_alone_share_a_row() -> None:
    rows = [{"machines": "a", "state": "Idle"}, {"machines": "b", "state": "Idle"}]
    assert merged(rows, "machines") == [{"machines": "a, b", "state": "Idle"}]
