"""The runbook: every alert has an entry, and the page is what the rules say."""

import pytest

import runbook


def test_the_page_is_what_the_rules_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert runbook.main(["--check"]) == 0, capsys.readouterr().out


def test_every_alert_says_what_to_do_and_where_to_look() -> None:
    text = runbook.page()
    assert text.count("- **Do:** ") == text.count("- **Look:** ") == text.count("\n## ") >= 50


@pytest.mark.parametrize(
    ("alert", "place"),
    [
        ("BigFleetShortfallAged", "Needs"),
        ("BigFleetNoLeader", "Topology"),
        ("BigFleetPinnedOnSpot", "Cost"),
        ("BigFleetRollupQuarantined", "Clusters"),
        ("BigFleetRollupSlow", "operator's log"),
        ("BigFleetCycleSlow", "Shards"),
        ("BigFleetStockout", "Providers"),
    ],
)
def test_where_to_look_follows_from_the_part_an_alert_speaks_of(alert: str, place: str) -> None:
    assert place in runbook.where(alert)
