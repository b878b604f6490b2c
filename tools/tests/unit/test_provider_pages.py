"""The generated parts of providers' pages are fresh, and only they are written."""

from pathlib import Path

import pytest

import provider_pages as pages
from bigfleet_provider_template.spec import SPEC
from provider_registry import ROOT, Provider

TEXT = f"before\n<!-- generated: options -->\nold\n{pages.END}\nafter\n"


def test_the_pages_of_the_repository_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert pages.main(["--check"]) == 0, capsys.readouterr().out


def test_only_the_part_between_the_comments_is_written() -> None:
    made = pages.with_parts(TEXT, "page.md", {"options": lambda: "new\n"})
    assert made == TEXT.replace("old", "new")


def test_a_page_without_its_part_is_named() -> None:
    with pytest.raises(pages.PagesError, match=r"page\.md lacks <!-- generated: calls -->"):
        pages.with_parts(TEXT, "page.md", {"calls": str, "options": str})


def test_a_part_that_nothing_writes_is_named() -> None:
    with pytest.raises(pages.PagesError, match="nothing writes the part 'options'"):
        pages.with_parts(TEXT, "page.md", {})


def test_an_old_page_is_a_failure_that_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ROOT / "docs" / "providers" / "README.md"
    monkeypatch.setattr(pages, "subjects", lambda: [pages.Subject])
    monkeypatch.setattr(pages, "pages_of", lambda subject: {place: "another text"})
    monkeypatch.setattr(pages, "unknown_series", lambda subject: [])
    assert pages.main(["--check"]) == 1
    assert "README.md is old: run python tools/provider_pages.py" in capsys.readouterr().out


def test_a_series_that_no_provider_exports_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "observability.md").write_text(
        "`bigfleet_provider_rpc_total` and `bigfleet_provider_wishes_total`"
    )
    provider = Provider("x", tmp_path / "index.md", (), "", None, None)
    problems = pages.unknown_series(pages.Subject(provider, SPEC))
    assert problems == [
        "observability.md names bigfleet_provider_wishes_total, which no provider exports"
    ]
