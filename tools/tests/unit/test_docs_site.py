"""The site is made of the files that a code host shows, and needs no network."""

from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

import docs_site

SETTINGS = """\
site_name: Test
theme: {name: material, font: false}
hooks: [HOOK]
validation: {links: {anchors: warn}, nav: {omitted_files: warn}}
nav: [README.md, {Guides: [guides/b.md, guides/]}, {Read: project/bigfleet.md}]
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text(f"# The {name}\n\n[guide](docs/guides/a.md#two--words)\n")
    (tmp_path / "src" / "code.py").write_text("pass\n")
    (tmp_path / "docs" / "README.md").write_text("# Home\n")
    (tmp_path / "docs" / "guides" / "a.md").write_text("# A\n\n## Two / words\n")
    (tmp_path / "docs" / "guides" / "b.md").write_text("# B\n")
    hook = tmp_path / "hook.py"
    hook.write_text("from docs_site import *\n")
    (tmp_path / "mkdocs.yml").write_text(SETTINGS.replace("HOOK", str(hook)))
    monkeypatch.setattr(docs_site, "ROOT", tmp_path)
    monkeypatch.setattr(docs_site, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(docs_site, "PROJECT", {"README.md": "project/bigfleet.md"})
    monkeypatch.setattr(docs_site, "SOURCES", {"project/bigfleet.md": "README.md"})
    return tmp_path


def built(world: Path, text: str) -> str:
    """The home page with a text, as a reader gets it."""
    (world / "docs" / "README.md").write_text(f"# Home\n\n{text}\n")
    build(load_config(str(world / "mkdocs.yml"), strict=True, use_directory_urls=False))
    return (world / "site" / "index.html").read_text("utf-8")


def test_a_link_out_of_docs_leads_to_a_copy(world: Path) -> None:
    page = built(world, "[code](../src/code.py) [read](../README.md) [folder](../src)")

    assert '<a href="files/src/code.py.txt">code</a>' in page
    assert '<a href="project/bigfleet.html">read</a> folder' in page
    assert (world / "site" / "files" / "src" / "code.py.txt").read_text() == "pass\n"


def test_a_page_of_the_root_finds_the_pages_of_docs(world: Path) -> None:
    built(world, "")

    page = (world / "site" / "project" / "bigfleet.html").read_text("utf-8")
    assert '<a href="../guides/a.html#two--words">guide</a>' in page


def test_a_folder_of_the_navigation_is_all_of_its_pages(world: Path) -> None:
    page = built(world, "")

    assert page.index("guides/b.html") < page.index("guides/a.html")


def test_a_list_may_follow_a_sentence(world: Path) -> None:
    assert "<li>one</li>" in built(world, "There are:\n- one\n- two")
    assert "<li>" not in built(world, "```\nThere are:\n- one\n```")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[x](gone.md)", "a link 'gone.md', but the target"),
        ("[x](../gone.py)", "a link 'gone.py', but the target"),
        ("[x](guides/a.md#gone)", "does not contain an anchor '#gone'"),
        ("[x](../README.md#gone)", "does not contain an anchor '#gone'"),
        ("![x](https://example.invalid/x.png)", "would be shown with <img"),
        ('<script src="//example.invalid/x.js"></script>', "would be shown with <script"),
    ],
)
def test_a_link_that_leads_nowhere_and_what_would_be_fetched_fail(
    world: Path, caplog: pytest.LogCaptureFixture, text: str, reason: str
) -> None:
    with pytest.raises(Abort):
        built(world, text)

    assert reason in caplog.text


def test_a_page_that_is_in_no_navigation_fails(
    world: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (world / "docs" / "lonely.md").write_text("# Lonely\n")

    with pytest.raises(Abort):
        built(world, "")

    assert "lonely.md" in caplog.text
