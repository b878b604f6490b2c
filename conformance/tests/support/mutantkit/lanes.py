"""Mutants on whole lanes: everything that fails there, not only what must.

`python -m mutantkit.lanes [M001 ...]` prints one line of JSON per mutant and run. From several runs
comes `failures.json`: what always failed, and what failed sometimes, because a race decides.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from bigfleet_conformance import Status, all_behaviours
from bigfleet_conformance.mutants import Mutant, all_mutants
from mutantkit.judge import BEYOND_65536, SMALL_LARGE, judge

STORED = Path(__file__).parent.parent.parent / "deep" / "failures.json"


def lane_of(mutant: Mutant) -> tuple[str, ...]:
    """All behaviours of the lanes in which a mutant must fail."""
    rows = all_behaviours()
    lanes = {rows[id].lane for id in mutant.must_fail}
    return tuple(id for id, row in rows.items() if row.lane in lanes)


async def failures(mutant: Mutant) -> list[str]:
    """What fails on whole lanes."""
    seeds = BEYOND_65536 if mutant.id == "M110" else SMALL_LARGE
    report = await judge(mutant.id, lane_of(mutant), large_seed=seeds)
    return [row["id"] for row in report.with_status(Status.FAILED)]


def merged(runs: Iterable[tuple[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    """What always failed, and what failed sometimes."""
    by_mutant: dict[str, list[set[str]]] = {}
    for id, failed in runs:
        by_mutant.setdefault(id, []).append(set(failed))

    def ordered(ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda id: int(id[1:]))

    return {
        id: {
            "always": ordered(sets[0].intersection(*sets)),
            "sometimes": ordered(sets[0].union(*sets) - sets[0].intersection(*sets)),
        }
        for id, sets in sorted(by_mutant.items())
    }


def main() -> None:
    """Print what fails."""
    wanted = sys.argv[1:] or list(all_mutants())
    for id in wanted:
        failed = asyncio.run(failures(all_mutants()[id]))
        sys.stdout.write(json.dumps([id, failed]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
