"""What all tests of the repository share: rungs, their order, the compile cache, the generators'
settings, what is said of skipped tests, and logging as it was before each of them.

A test's rung is the folder below `tests` in which it lies (`bigfleet/tests/unit/...` is `unit`), so
that it needs no marker, and a test outside every rung is refused: no command would ever run it.
"""

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import skipped_tests
from distribution_of_tests import PieceScheduling, in_order, runs_alone

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

# The same examples on every run of a change, more of them in CI, new ones every night. Deadlines
# are left to pytest-timeout: the first example pays for compilation.
EXAMPLES = {"change": 40, "mutant": 40, "all": 100, "nightly": 2_000}
MODE = os.environ.get("MODE", "change")
hypothesis.settings.register_profile(
    "bigfleet", deadline=None, derandomize=MODE != "nightly", max_examples=EXAMPLES[MODE]
)
hypothesis.settings.load_profile("bigfleet")


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
    for number, item in enumerate(items):
        rung = rung_of(item.path)
        if rung is None:
            raise pytest.UsageError(
                f"{item.path} lies in no rung; move it to tests/<one of {', '.join(sorted(RUNGS))}>"
            )
        item.add_marker(rung)
        if runs_alone(item):
            item.add_marker(pytest.mark.xdist_group(f"long-{number}"))
    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> PieceScheduling | None:
    return PieceScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and let it never look at what collecting made.

    Fourteen thousand tests with their modules are a million objects that all live until the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    skipped_tests.add_option(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    skipped_tests.fail_when_skipped(session)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    skipped_tests.print_last_line(config)
