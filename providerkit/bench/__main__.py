"""The benchmarks of the provider side: `python -m providerkit.bench [ROW...]` prints rows as JSON.

Progress goes to stderr. A scenario with a wrong result gives rows without figures, and the reason.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from providerkit.bench import certify, churn, provider, real_start
from providerkit.bench.rows import Row, Scenario, failed, middle


async def measure(scenario: Scenario) -> list[Row]:
    """One scenario as often as it is repeated, each time in a folder of its own."""
    rounds = []
    for _ in range(scenario.times):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(await scenario.measure(Path(folder)))
    return middle(rounds)


def chosen(names: Sequence[str]) -> list[Scenario]:
    """The scenarios that measure these rows; without names, all."""
    everything = (
        *provider.SCENARIOS,
        *real_start.SCENARIOS,
        *churn.SCENARIOS,
        *certify.SCENARIOS,
    )
    known = [bar.name for scenario in everything for bar in scenario.bars]
    for name in names:
        if name not in known:
            raise SystemExit(f"no row {name}; there are {', '.join(known)}")
    return [
        scenario
        for scenario in everything
        if not names or any(bar.name in names for bar in scenario.bars)
    ]


def main() -> None:
    """Measure everything, or the rows that are named."""
    parser = argparse.ArgumentParser(prog="python -m providerkit.bench", description=__doc__)
    parser.add_argument("row", nargs="*", help="such as provider.list.20000; default: all")
    scenarios = chosen(parser.parse_args().row)
    rows: list[Row] = []
    for number, scenario in enumerate(scenarios, 1):
        names = ", ".join(bar.name for bar in scenario.bars)
        sys.stderr.write(f"[{number}/{len(scenarios)}] {names}\n")
        try:
            rows += asyncio.run(measure(scenario))
        except (AssertionError, OSError) as error:
            sys.stderr.write(f"wrong: {error}\n")
            rows += [failed(bar, str(error)) for bar in scenario.bars]
    sys.stdout.write(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
