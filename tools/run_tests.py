"""`make test`: turns rungs of the testing ladder into one run of pytest.

Chooses by folder, not by marker, so that a single rung does not pay for importing the others.
Everything after the known options goes to pytest unchanged.

There are three sizes. What a change runs shows every behaviour once; `--all` (`make test ALL=1`)
adds the tests marked exhaustive and larger numbers of generated cases; `--deep` (`make test-deep`)
adds the tests marked deep. `docs/internals/testing.md` lists what runs at which size.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUNGS = ("unit", "property", "golden", "closedloop", "dst", "integration", "crash", "queries")
USUAL = "not exhaustive and not deep and not e2e"
WITHOUT_DEEP = "not deep and not e2e"
WITH_DEEP = "not e2e"
WORKERS_PER_CORE = 2
"""Half of the time a worker waits: for processes that start, for a lease that runs out."""
MOST_WORKERS = 8
DISTRIBUTION = ("--dist=loadgroup", "--no-loadscope-reorder")
"""Whole modules, in the order that tests/support/distribution_of_tests.py gives them."""
LONG_TIMEOUT_SECONDS = 3_600


class UnknownRungError(ValueError):
    """A rung was asked for that the ladder does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"ONLY={name}: no such rung; choose from {', '.join(RUNGS)}")


def parse_rungs(text: str) -> tuple[str, ...]:
    """Split a list such as `unit,property` or `unit property`; nothing means every rung."""
    names = text.replace(",", " ").split()
    for name in names:
        if name not in RUNGS:
            raise UnknownRungError(name)
    return tuple(dict.fromkeys(names)) or RUNGS


def folders_of(root: Path, rungs: Sequence[str]) -> list[Path]:
    """Every folder of these rungs: of each distribution, of the providers, and the shared ones."""
    return [
        folder
        for rung in rungs
        for pattern in (f"*/tests/{rung}", f"providers/*/tests/{rung}", f"tests/{rung}")
        for folder in sorted(root.glob(pattern))
        if not folder.parts[-3].startswith(".")
    ]


def pytest_arguments(
    root: Path, rungs: Sequence[str], *, deep: bool, everything: bool = False, nightly: bool = False
) -> list[str]:
    """The arguments for pytest, or an empty list when no folder of these rungs exists."""
    chosen = (*rungs, "deep") if deep else tuple(rungs)
    folders = folders_of(root, chosen)
    if not folders:
        return []
    workers = min(WORKERS_PER_CORE * (os.cpu_count() or 1), MOST_WORKERS)
    return [
        *(str(folder.relative_to(root)) for folder in folders),
        "-m",
        WITH_DEEP if deep else WITHOUT_DEEP if everything else USUAL,
        "-n",
        str(workers),
        *DISTRIBUTION,
        *([f"--timeout={LONG_TIMEOUT_SECONDS}"] if deep or nightly else []),
    ]


def main(argv: Sequence[str]) -> int:
    """Run the chosen rungs and answer with pytest's exit code."""
    parser = argparse.ArgumentParser(prog="make test", description=__doc__)
    parser.add_argument("--only", default="", help="rungs, separated by commas or spaces")
    parser.add_argument("--deep", action="store_true", help="include the tests marked deep")
    parser.add_argument("--all", action="store_true", help="every size, as .ci/run does")
    options, rest = parser.parse_known_args(argv)
    try:
        rungs = parse_rungs(options.only)
    except UnknownRungError as error:
        print(error, file=sys.stderr)
        return 2
    if options.all:
        os.environ.setdefault("MODE", "all")
    nightly = os.environ.get("MODE") == "nightly"
    arguments = pytest_arguments(
        ROOT, rungs, deep=options.deep, everything=options.all, nightly=nightly
    )
    if not arguments:
        print(f"No tests lie in {', '.join(rungs)} yet", file=sys.stderr)
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    os.chdir(ROOT)
    return int(pytest.main([*arguments, *rest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
