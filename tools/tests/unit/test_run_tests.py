"""`make test` runs the rungs that were asked for, and refuses those that do not exist."""

from pathlib import Path

import pytest

import run_tests


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
