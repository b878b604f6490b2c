"""What all tests of the repository share: rungs, their order, the compile cache, the generators'
settings, what is said of skipped tests, and logging as it was before each of them.

A test's rung is the folder below `tests` in which it lies (`bigfleet/tests/unit/...` is `unit`), so
that it needs no marker, and a test outside every rung is refused: no command would ever run it.
"""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import long_tests
import pytest
import skipped_tests

# pytest names a test after its path, `bigfleet.tests.unit...`, and would take the folder bigfleet/
# for the package of that name unless the real one is there first.
import bigfleet  # noqa: F401

ROOT = Path(__file__).parent
RUNGS = frozenset(
    {
        *("unit", "property", "golden", "closedloop", "dst", "integration", "crash", "queries"),
        *("mutants", "deep", "e2e"),
    }
)

# Set before anything imports numba, so that a plain `pytest` shares the cache with make.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba"))

# The same examples on every run of a change, new ones every night. Deadlines are left to
# pytest-timeout: the first example pays for compilation.
hypothesis.settings.register_profile("change", deadline=None, derandomize=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("nightly" if os.environ.get("MODE") == "nightly" else "change")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command that is run inside a test sets up logging for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def rung_of(path: Path) -> str | None:
    """The folder below the last `tests` in a path, if that is a rung."""
    folders = path.parts[:-1]
    for parent, folder in zip(reversed(folders[:-1]), reversed(folders[1:]), strict=True):
        if parent == "tests":
            return folder if folder in RUNGS else None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        rung = rung_of(item.path)
        if rung is None:
            raise pytest.UsageError(
                f"{item.path} lies in no rung; move it to tests/<one of {', '.join(sorted(RUNGS))}>"
            )
        item.add_marker(rung)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = long_tests.spread_long_tests(items, workers)


def pytest_addoption(parser: pytest.Parser) -> None:
    skipped_tests.add_option(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    skipped_tests.fail_when_skipped(session)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    skipped_tests.print_last_line(config)
