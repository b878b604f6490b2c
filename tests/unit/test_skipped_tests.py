"""A run says in its last line what it did not test; in CI it fails for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import skipped_tests

SUPPORT = Path(skipped_tests.__file__).parent
EXHAUSTIVE = pytest.mark.exhaustive
CONFTEST = """
import skipped_tests
pytest_addoption = skipped_tests.add_option
pytest_sessionfinish = skipped_tests.fail_when_skipped
pytest_unconfigure = skipped_tests.print_last_line
"""
TESTS = """
import pytest
from skipped_tests import missing_program

@pytest.mark.skipif({skip}, reason=missing_program("Chromium", "chromium"))
def test_a_screen():
    pass

def test_a_query():
    if {skip}:
        pytest.skip(missing_program("Prometheus", "prometheus"))

def test_something_else():
    pass
"""


@pytest.mark.parametrize(
    ("skip", "flags", "code", "workers"),
    [
        pytest.param(True, [], 0, "0", id="skipped"),
        pytest.param(True, ["--no-skips"], 1, "2", id="skipped-in-ci-by-two-workers"),
        pytest.param(False, ["--no-skips"], 0, "0", id="all-run-in-ci"),
        pytest.param(True, [], 0, "2", id="skipped-by-two-workers", marks=EXHAUSTIVE),
        pytest.param(True, ["--no-skips"], 1, "0", id="skipped-in-ci", marks=EXHAUSTIVE),
        pytest.param(False, [], 0, "0", id="all-run", marks=EXHAUSTIVE),
        pytest.param(False, [], 0, "2", id="all-run-by-two-workers", marks=EXHAUSTIVE),
        pytest.param(
            False, ["--no-skips"], 0, "2", id="all-run-in-ci-by-two-workers", marks=EXHAUSTIVE
        ),
    ],
)
def test_what_was_skipped_is_the_last_line_and_a_failure_in_ci(
    tmp_path: Path, skip: bool, flags: list[str], code: int, workers: str
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS.format(skip=skip))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, *flags], cwd=tmp_path, check=False,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)}, capture_output=True, text=True,
    )  # fmt: skip
    last = done.stdout.splitlines()[-1]
    assert done.returncode == code, done.stdout + done.stderr
    if skip:
        assert last == (
            "NOT TESTED: "
            "1 test (needs Chromium; install it with `make chromium` or `apt-get install chromium`)"
            "; 1 test (needs Prometheus; install it with `make prometheus` or "
            "`apt-get install prometheus`)"
        )
    else:
        assert "NOT TESTED" not in done.stdout
        assert "3 passed" in last


def test_the_same_reason_is_said_once_with_the_number_of_tests() -> None:
    assert skipped_tests.last_line(["needs A", "needs B", "needs A"]) == (
        "NOT TESTED: 2 tests (needs A); 1 test (needs B)"
    )
    assert skipped_tests.last_line([]) == ""
