"""The registry of providers says what declarations and stored reports say."""

import json
from pathlib import Path

import pytest

import provider_registry as registry

ROWS = [
    {"id": id, "area": area, "required": True, "profiles": ["core"], "status": status}
    for id, area, status in (("B101", "lifecycle", "passed"), ("B2001", "additional", "failed"))
]


def stored(root: Path, suite: str, version: str, date: str, below: str = "") -> None:
    folder = root / suite / "mycloud" / version / below
    folder.mkdir(parents=True)
    document = {"environment": {"started": f"{date}T10:00:00+00:00"}, "behaviors": ROWS}
    (folder / "report.json").write_text(json.dumps(document), "utf-8")


def test_the_newest_report_of_each_substrate_counts(tmp_path: Path) -> None:
    stored(tmp_path, "0.9.0", "0.2.0", "2026-01-01")
    stored(tmp_path, "0.10.0", "0.2.0", "2026-02-01")
    stored(tmp_path, "0.10.0", "0.10.0", "2026-03-01")
    stored(tmp_path, "0.9.0", "0.2.0", "2026-01-02", "http")
    memory, http = (registry.newest(tmp_path, "mycloud", below) for below in ("", "http"))
    assert memory is not None
    assert http is not None
    assert (memory.date, http.date) == ("2026-03-01", "2026-01-02")
    assert (memory.baseline, memory.additions) == ("COMPATIBLE, 1 of 1", "FAILED, 0 of 1")
    assert registry.newest(tmp_path, "other", "") is None


def test_every_provider_of_the_repository_is_listed_with_its_pages() -> None:
    rows = {row.name: row for row in registry.providers()}
    assert "_template" not in rows
    assert rows["aws"].capacity_types == ("on_demand", "reserved", "spot")
    assert {name: rows[name].channel for name in ("aws", "digitalocean", "kwok")} == {
        "aws": "command", "digitalocean": "agent", "kwok": "none",
    }  # fmt: skip
    assert all(row.page.is_file() for row in rows.values())


def test_a_provider_without_a_report_says_so() -> None:
    row = registry.Provider("x", registry.ROOT / "docs/x.md", ("spot",), "ssh", None, None)
    line = registry.table([row], registry.ROOT / "docs" / "providers")[-1]
    assert line == "| [x](../x.md) | spot | ssh | no report | no report | no report | no report |"


def test_only_the_table_of_the_readme_is_written() -> None:
    text = f"before\n{registry.BEGIN}\nold\n{registry.END}\nafter\n"
    made = registry.with_table(text, [])
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.endswith(f"{registry.END}\nafter\n")
    assert registry.with_table(made, []) == made


def test_the_pages_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert registry.main(["--check"]) == 0, capsys.readouterr().out
