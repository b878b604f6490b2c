"""The rule on wording finds what it should and knows its exemptions."""

import pytest

from house.phrases import identifiers_in, is_checked, phrases_in


def found(text: str, name: str = "docs/page.md") -> list[str]:
    return [complaint for _, complaint in phrases_in(name, text)]


@pytest.mark.parametrize(
    "text",
    [
        "that is no number",
        "A path that is\nno object",
        "# such a node is\n    # no victim",
        "they are no demand",
        "Nobody reads it",
        "def test_nobody_reads_it() -> None:",
        "whoever finds a token",
        "somebody else's port",
        "decided anew",
        "mend it, or remove it",
        "the machine is too dear",
        "waits for ever",
    ],
)
def test_unwanted_wording_is_found(text: str) -> None:
    assert len(found(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "there is no lease",
        "There\nare no hosts",
        "it is no longer used",
        "they were no more than ten",
        "the list is no larger than a page",
        "this is no-op code",
        "recommend and amend",
        "run as the uid nobody (65534)",
        "runAsUser: nobody",
        "A negative max_results is refused, or is no cap.",
        "the shard asked the provider and told the operator",
    ],
)
def test_ordinary_sentences_pass(text: str) -> None:
    assert not found(text)


def test_a_complaint_has_its_line_and_the_remedy() -> None:
    assert list(phrases_in("docs/page.md", "first\nit works\nanew\n")) == [
        (3, '"anew": write "again"')
    ]


def test_the_list_of_wording_to_avoid_may_quote_it() -> None:
    text = "# Contributing\nanew\n## Language\nNot: anew\n## Commit\nanew\n"

    assert [line for line, _ in phrases_in("CONTRIBUTING.md", text)] == [2, 6]
    assert [line for line, _ in phrases_in("docs/page.md", text)] == [2, 4, 6]


def test_entries_of_published_releases_stay_as_they_are() -> None:
    text = "## Unreleased\n- anew\n## 0.1.0\n- anew\n"

    assert [line for line, _ in phrases_in("CHANGELOG.md", text)] == [2]


@pytest.mark.parametrize(
    "text", ["told = 1", "def f(asked): ...", "self._said = 2", "class Heard: ..."]
)
def test_a_bare_participle_of_saying_is_not_a_name(text: str) -> None:
    assert len(list(identifiers_in(text))) == 1


@pytest.mark.parametrize(
    "text", ["told_shard = 1", "def test_it_is_told(): ...", "'asked'", "x.asked()"]
)
def test_longer_names_and_uses_pass(text: str) -> None:
    assert not list(identifiers_in(text))


def test_generated_and_foreign_files_are_not_checked() -> None:
    assert is_checked("docs/page.md")
    assert is_checked("Makefile")
    for name in ("api/src/a_pb2.py", "a_pb2.pyi", "conformance/reports/0.1.0/x.json", "LICENSE"):
        assert not is_checked(name)
    assert not is_checked("dashboard/src/x/static/vendor/uplot/uPlot.js")
