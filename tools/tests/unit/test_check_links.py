"""Links between documents are followed as a reader would follow them."""

from pathlib import Path

import pytest

import check_links


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "other.md").write_text("# Other page\n\n## Two words\n\n## Two words\n")
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    "text",
    [
        "[file](other.md)",
        "[heading](other.md#two-words)",
        "[second of that name](other.md#two-words-1)",
        "# Here\n[own heading](#here)",
        "[web](https://example.invalid/nothing) and [mail](mailto:a@example.invalid)",
        "```\n[in code](nowhere.md)\n```",
        "`[in code](nowhere.md)`",
        '[titled](other.md "a title")',
    ],
)
def test_a_link_that_leads_somewhere_passes(page: Path, text: str) -> None:
    page.write_text(text)

    assert list(check_links.broken_links(page)) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[x](gone.md)", "no such file"),
        ("![x](gone.png)", "no such file"),
        ("[x](other.md#gone)", "no such heading"),
        ("[x](#gone)", "no such heading"),
        ("[a](other.md) [b](gone.md)", "no such file"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(page: Path, text: str, reason: str) -> None:
    page.write_text(f"first line\n{text}\n")

    (found,) = check_links.broken_links(page)

    assert found.startswith(f"{page}:2: ")
    assert found.endswith(reason)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Plain", "plain"),
        ("Who may import whom", "who-may-import-whom"),
        ("0001: One `repository`, many parts", "0001-one-repository-many-parts"),
        ("A [link](x.md) inside", "a-link-inside"),
    ],
)
def test_anchors_are_made_as_code_hosts_make_them(heading: str, expected: str) -> None:
    assert check_links.anchor(heading) == expected
