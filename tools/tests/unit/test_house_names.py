"""The rules on names, rooms and sizes, and the backlog that only shrinks."""

from pathlib import Path

import pytest

from house.findings import Finding, outside_backlog, read_backlog
from house.names import class_findings, is_vague, module_findings
from house.rooms import room_findings
from house.sizes import GOALS, code_lines, measured, provider_findings, size_findings


@pytest.mark.parametrize("word", ["asking", "loaded", "told", "Waiting", "words", "_held"])
def test_participles_and_vague_nouns_are_not_names(word: str) -> None:
    assert is_vague(word)


@pytest.mark.parametrize(
    "word", ["feed", "Need", "tracing", "list_reader", "held_back", "settings", "Ring", "Binding"]
)
def test_nouns_and_terms_of_the_domain_are_names(word: str) -> None:
    assert not is_vague(word)


def test_a_module_is_reported_by_its_path() -> None:
    keys = [finding.key for finding in module_findings(["a/asking.py", "a/queue.py", "asking.md"])]

    assert keys == ["a/asking.py"]


def test_one_name_for_two_classes_of_a_distribution_is_reported_once() -> None:
    sources = {
        "one/src/a.py": "class Entry: ...\nclass _Private: ...\n",
        "one/src/b.py": "class Entry: ...\nclass _Private: ...\n",
        "two/src/a.py": "class Entry: ...\n",
    }

    findings = list(class_findings(sources))

    assert [finding.entry for finding in findings] == ["class-twice one:Entry"]
    assert "one/src/a.py:1, one/src/b.py:1" in findings[0].text


def test_a_class_named_by_a_participle_is_reported_and_an_error_is_not() -> None:
    sources = {
        "one/src/a.py": "class Told: ...\nclass ToldReply: ...\n",
        "one/src/errors.py": "class Throttled(Exception): ...\n",
    }

    assert [finding.key for finding in class_findings(sources)] == ["one/src/a.py:Told"]


def package(modules: int, head: str = "", room: str = "room") -> dict[str, str]:
    return {
        "p/src/p/__init__.py": f'"""{head}"""',
        f"p/src/p/{room}/__init__.py": "",
        **{f"p/src/p/m{number}.py": "x = 1\n" for number in range(modules)},
    }


def test_eight_modules_beside_rooms_pass_and_nine_do_not() -> None:
    assert not list(room_findings(package(8, "room: what is in it")))
    assert [finding.rule for finding in room_findings(package(9, "room: what is in it"))] == [
        "rooms"
    ]


def test_a_head_names_every_room() -> None:
    assert [finding.rule for finding in room_findings(package(1, "rooms and such"))] == ["head"]


def test_a_package_without_rooms_is_small() -> None:
    sources = {"p/src/p/__init__.py": "", "p/src/p/a.py": "x = 1\n" * 3_001}

    assert [finding.rule for finding in room_findings(sources)] == ["rooms"]


def test_a_figure_above_its_goal_keeps_the_ceiling_of_the_backlog() -> None:
    figures = {"lines": GOALS["lines"], "modules": 1, "megabytes": 11}

    kept = [finding.entry for finding in size_findings(figures, ["size megabytes=12"])]
    above = [finding.entry for finding in size_findings(figures, ["size megabytes=10"])]

    assert kept == ["size megabytes=12"]
    assert above == ["size megabytes=11"]


def test_sizes_count_the_control_plane_only() -> None:
    sources = {"bigfleet/src/a.py": "x\ny\n", "lab/src/b.py": "x\n"}

    assert measured(sources, 1_000_001) == {"lines": 2, "modules": 1, "megabytes": 2}


def test_the_backlog_covers_what_it_lists_and_nothing_else(tmp_path: Path) -> None:
    backlog = tmp_path / "backlog.txt"
    backlog.write_text("# comment\n\nphrase docs\nphrase clean\n", encoding="utf-8")
    findings = [Finding("phrase", "docs", "d"), Finding("phrase", "src", "s")]

    complaints = list(outside_backlog(findings, read_backlog(backlog)))

    assert complaints[0] == "s"
    assert len(complaints) == 2
    assert "'phrase clean' is clean now; remove the line" in complaints[1]


def test_a_provider_may_be_so_long_and_empty_lines_comments_and_docstrings_do_not_count() -> None:
    code = '"""Head.\n\nMore."""\n\n# Why.\nclass A:\n    """What."""\n\n    x = 1\n'
    assert code_lines(code) == 2
    long = {"providers/hetzner/src/a.py": "x = 1\n" * 400}
    assert list(provider_findings(long)) == []
    (finding,) = provider_findings({**long, "providers/hetzner/src/b.py": "x = 1\n" * 101})
    assert "501 lines of code, at most 500" in finding.text
