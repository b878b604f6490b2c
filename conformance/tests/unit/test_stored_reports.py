"""Reports that are kept in the repository are whole, and the way to repeat them is written down."""

from pathlib import Path

from bigfleet_conformance.report.verify import complaints

REPORTS = Path(__file__).parent.parent.parent / "reports"


def test_every_stored_report_is_whole_and_can_be_repeated() -> None:
    for report in sorted(REPORTS.rglob("report.json")):
        assert complaints(report.parent) == []
        assert "## Reproduce" in (report.parent / "README.md").read_text(encoding="utf-8")
