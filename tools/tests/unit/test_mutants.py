"""Mutants change one place each, are drawn by seed, and their explanations outlive a run."""

from pathlib import Path

import pytest

import mutants
from mutating import Mutant, mutants_of
from mutation_report import (
    UNEXPLAINED,
    Verdict,
    explained_survivors,
    explanations,
    kill_rate,
    page,
    write_report,
)

SOURCE = '''"""A docstring with 1 number."""
import math

LIMIT: int = 3


def pick(items: list[int], most: int = 2) -> int:
    """Never 1 + 1."""
    total = 0
    for item in items:
        if item < most and not item == 7:
            continue
        total += max(item, LIMIT)
    return total
'''


def changes(source: str = SOURCE) -> set[tuple[str, str]]:
    return {(m.kind, m.after) for m in mutants_of(source, "f.py")}


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("boundary", "if (item <= most) and not item == 7:"),
        ("comparison", "if (item >= most) and not item == 7:"),
        ("and, or", "if (item < most or not item == 7):"),
        ("not removed", "if item < most and (item == 7):"),
        ("constant", "LIMIT: int = (3 + 1)"),
        ("constant", "total = (0 - 1)"),
        ("statement removed", "pass"),
        ("arithmetic", "total -= max(item, LIMIT)"),
        ("min, max", "total += min(item, LIMIT)"),
        ("return value", "return 0"),
    ],
)
def test_each_kind_of_mistake_is_made(kind: str, after: str) -> None:
    assert (kind, after) in changes()


def test_a_negative_number_is_changed_as_a_whole() -> None:
    assert changes("x = -1\n") == {("constant", "x = (0)")}


def test_words_imports_and_annotations_are_left_alone() -> None:
    for mutant in mutants_of(SOURCE, "f.py"):
        assert mutant.source.splitlines()[:3] == SOURCE.splitlines()[:3]
        assert '"""Never 1 + 1."""' in mutant.source
        assert "list[int], most: int = " in mutant.source


def test_every_mutant_is_one_change_that_compiles() -> None:
    for mutant in mutants_of(SOURCE, "f.py"):
        compile(mutant.source, "f.py", "exec")
        old, new = SOURCE.splitlines(), mutant.source.splitlines()
        different = [i for i, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b]
        assert len(different) == 1
        assert mutant.function in ("", "pick")


def test_a_condition_over_several_lines_is_replaced_as_a_whole() -> None:
    source = (
        "def f(a, b):\n    if g(\n        a,\n        b,\n    ):\n        return 1\n    return 2\n"
    )
    negated = [m for m in mutants_of(source, "f.py") if m.kind == "condition negated"]
    assert negated[0].source.splitlines()[1] == "    if not (g(a, b)):"


def test_a_sample_is_drawn_by_seed_and_holds_one_of_a_kind_per_line() -> None:
    everything = mutants_of(SOURCE, "f.py")
    sample = mutants.sample_of(everything, 100, seed=3)
    assert sample == mutants.sample_of(everything, 100, seed=3)
    assert sample != mutants.sample_of(everything, 100, seed=4)
    assert len({(m.line, m.kind) for m in sample}) == len(sample)
    assert len(mutants.sample_of(everything, 5, seed=3)) == 5


def mutant(before: str = "a < b", line: int = 7) -> Mutant:
    return Mutant("kernels/x.py", "f", "boundary", line, before, "(a <= b)", "")


def test_an_explanation_is_kept_when_lines_move(tmp_path: Path) -> None:
    report = tmp_path / "survivors.md"
    write_report(report, [(mutant(), Verdict.SURVIVED)], known=10, seed=1)
    assert UNEXPLAINED in report.read_text()
    explanation = "Equal amounts\ncannot happen here."
    report.write_text(report.read_text().replace(UNEXPLAINED, explanation))
    write_report(report, [(mutant(line=99), Verdict.SURVIVED)], known=10, seed=2)
    assert explanations(report.read_text()) == {mutant().key: explanation}


def test_a_survivor_is_known_once_it_is_explained(tmp_path: Path) -> None:
    report = tmp_path / "survivors.md"
    assert explained_survivors(report) == frozenset()
    write_report(report, [(mutant(), Verdict.SURVIVED)], known=10, seed=1)
    assert explained_survivors(report) == frozenset()
    report.write_text(report.read_text().replace(UNEXPLAINED, "Equivalent: b is never a."))
    assert explained_survivors(report) == {mutant().key}


def test_the_page_counts_what_died_and_lists_what_did_not() -> None:
    results = [
        (mutant(), Verdict.SURVIVED),
        (mutant("c < d"), Verdict.KILLED),
        (mutant("e < f"), Verdict.TIMED_OUT),
        (mutant("g < h"), Verdict.KILLED),
    ]
    text = page(results, 10, 5, {})
    assert "Sample 4 of 10 possible mutants, seed 5: 2 killed, 1 timed out, 1 survived." in text
    assert "| kernels/x.py | 4 | 1 |" in text
    assert text.count("### ") == 1
    assert kill_rate(results) == 0.75


def test_the_engine_has_thousands_of_mutants_and_none_in_what_never_runs_interpreted() -> None:
    files = {m.file for m in mutants.all_mutants()}
    assert "kernels/preempt.py" in files
    assert not files & mutants.NOT_INTERPRETED
    assert {m.file for m in mutants.all_mutants("exact")} == {"kernels/exact.py"}
