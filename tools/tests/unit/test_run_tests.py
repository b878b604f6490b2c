"""`make test` runs the rungs that were asked for, and refuses those that do not exist."""

import re
import runpy
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

import run_tests

SIZES = run_tests.ROOT / "bigfleet" / "tests" / "support" / "sizes.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in (
        "api/tests/unit",
        "bigfleet/tests/unit",
        "bigfleet/tests/property",
        "bigfleet/tests/deep",
        "providers/aws/tests/unit",
        "tests/integration",
        ".venv/tests/unit",
    ):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", run_tests.RUNGS),
        ("unit", ("unit",)),
        ("unit,property", ("unit", "property")),
        ("unit property", ("unit", "property")),
        ("unit, unit", ("unit",)),
    ],
)
def test_rungs_are_separated_by_commas_or_spaces(text: str, expected: tuple[str, ...]) -> None:
    assert run_tests.parse_rungs(text) == expected


def test_an_unknown_rung_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tests.main(["--only", "unit,untit"]) == 2

    message = capsys.readouterr().err
    assert "untit" in message
    assert "closedloop" in message


def test_a_rung_is_collected_from_every_distribution(checkout: Path) -> None:
    folders = run_tests.folders_of(checkout, ["unit"])

    assert [str(folder.relative_to(checkout)) for folder in folders] == [
        "api/tests/unit",
        "bigfleet/tests/unit",
        "providers/aws/tests/unit",
    ]


def test_what_crosses_distributions_lies_at_the_top(checkout: Path) -> None:
    folders = run_tests.folders_of(checkout, ["integration"])

    assert folders == [checkout / "tests/integration"]


def test_deep_tests_run_only_when_asked_for(checkout: Path) -> None:
    usual = run_tests.pytest_arguments(checkout, run_tests.RUNGS, deep=False)
    deep = run_tests.pytest_arguments(checkout, run_tests.RUNGS, deep=True)

    assert "bigfleet/tests/deep" not in usual
    assert run_tests.USUAL in usual
    assert "bigfleet/tests/deep" in deep
    assert run_tests.WITH_DEEP in deep


def test_every_size_runs_only_when_asked_for(checkout: Path) -> None:
    everything = run_tests.pytest_arguments(checkout, run_tests.RUNGS, deep=False, everything=True)

    assert "not exhaustive" in run_tests.USUAL
    assert run_tests.WITHOUT_DEEP in everything
    assert "exhaustive" not in run_tests.WITHOUT_DEEP
    assert "bigfleet/tests/deep" not in everything


def test_no_folder_means_no_run_instead_of_everything(checkout: Path) -> None:
    assert run_tests.pytest_arguments(checkout, ["crash"], deep=False) == []


def test_nightly_size_gets_nightly_time(checkout: Path) -> None:
    usual = run_tests.pytest_arguments(checkout, ["property"], deep=False)
    nightly = run_tests.pytest_arguments(checkout, ["property"], deep=False, nightly=True)
    deep = run_tests.pytest_arguments(checkout, ["property"], deep=True)

    assert not any(argument.startswith("--timeout") for argument in usual)
    assert "--timeout=3600" in nightly
    assert "--timeout=3600" in deep


@pytest.mark.parametrize(
    ("markers", "runs_in"),
    [
        (set(), ("usual", "all", "deep")),
        ({"exhaustive"}, ("all", "deep")),
        ({"deep"}, ("deep",)),
        ({"exhaustive", "deep"}, ("deep",)),
        ({"e2e"}, ()),
    ],
)
def test_what_is_left_out_runs_at_a_larger_size(
    markers: set[str], runs_in: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    sizes = {
        "usual": run_tests.pytest_arguments(tmp_path, ["unit"], deep=False),
        "all": run_tests.pytest_arguments(tmp_path, ["unit"], deep=False, everything=True),
        "deep": run_tests.pytest_arguments(tmp_path, ["unit"], deep=True),
    }

    def has(name: str, /, **_: object) -> bool:
        return name in markers

    chosen = []
    for size, arguments in sizes.items():
        expression = Expression.compile(arguments[arguments.index("-m") + 1])
        if expression.evaluate(has):
            chosen.append(size)
    assert tuple(chosen) == runs_in


def modules_with_larger_sizes() -> list[Path]:
    """Every module of tests in which something runs only at a larger size."""
    folders = run_tests.folders_of(run_tests.ROOT, run_tests.RUNGS)
    modules = (path for folder in folders for path in sorted(folder.rglob("test_*.py")))
    larger = re.compile(r"mark\.exhaustive|\beverything=\d")
    return [path for path in modules if larger.search(path.read_text("utf-8"))]


def test_what_a_change_leaves_out_is_listed_in_the_page_on_testing() -> None:
    page = (run_tests.ROOT / "docs" / "internals" / "testing.md").read_text("utf-8")
    listed = [
        str(path.relative_to(run_tests.ROOT))
        for path in modules_with_larger_sizes()
        if f"`{path.relative_to(run_tests.ROOT)}`" not in page
        and f"`{path.parent.relative_to(run_tests.ROOT)}/`" not in page
    ]
    assert listed == []


def test_numbers_of_cases_grow_with_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for mode in ("change", "all", "nightly"):
        monkeypatch.setenv("MODE", mode)
        loaded = runpy.run_path(str(SIZES))
        pieces = loaded["chunks"](10, 1_000, 5, first=7, everything=100)
        assert [seed for piece in pieces for seed in piece] == list(range(7, 7 + len_of(pieces)))
        shown[mode] = (loaded["many"](3, 50, 1, everything=9), len_of(pieces))
    assert shown == {"change": (3, 10), "all": (9, 100), "nightly": (50, 1_000)}


def len_of(pieces: list[range]) -> int:
    """How many seeds there are in all pieces."""
    return sum(map(len, pieces))
