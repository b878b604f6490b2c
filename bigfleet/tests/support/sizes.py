"""How many generated cases a test looks at: few per mutant, enough for a change, more in CI
(`make test ALL=1`), many at night (`make test-deep`).
"""

import os

MODE = os.environ.get("MODE", "change")
NIGHTLY = MODE == "nightly"
MUTANT = MODE == "mutant"
EVERYTHING = MODE == "all"


def many(change: int, nightly: int, mutant: int, everything: int | None = None) -> int:
    """The number of cases for this run; in CI that of a change, unless `everything` says more."""
    if EVERYTHING and everything is not None:
        return everything
    return nightly if NIGHTLY else mutant if MUTANT else change


def chunks(
    change: int, nightly: int, mutant: int, first: int = 0, everything: int | None = None
) -> list[range]:
    """Seeds from `first` on, in pieces that workers can share: for `parametrize`."""
    total = many(change, nightly, mutant, everything)
    size = max(5, min(250, total // 8))
    return [range(at, min(at + size, first + total)) for at in range(first, first + total, size)]


def label(seeds: range) -> str:
    """The name of a piece in the list of tests."""
    return f"seeds-{seeds.start}-to-{seeds.stop - 1}"
