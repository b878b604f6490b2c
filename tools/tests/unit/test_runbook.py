"""The runbook: every alert has an entry, and the page is what the rules say."""

import pytest

import runbook


def test_the_page_is_what_the_rules_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert runbook.main(["--check"]) == 0, capsys.readouterr().out


def test_every_alert_says_what_to_do_and_where_to_look() -> None:
    text = runbook.page()
    alerts = text.count("\n## ")
    assert alerts >= 50
    assert text.count("- **What to do:** ") == text.count("- **Where to look:** ") == alerts


def test_every_alert_has_a_page_that_says_what_its_metrics_mean() -> None:
    for rule in runbook.rules():
        text = runbook.own_page(rule)
        assert rule["annotations"]["runbook"] in text
        for metric in runbook.metrics_of(rule["expr"]):
            assert f"| `{metric}` | " in text


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
