"""All benchmarks of the provider side: `python -m providerkit.bench` prints their rows as JSON.

Progress goes to stderr. A scenario with a wrong result gives rows without figures, and the reason.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from providerkit.bench import certify, churn, provider
from providerkit.bench.rows import Row, Scenario, failed, middle


async def measure(scenario: Scenario) -> list[Row]:
    """One scenario as often as it is repeated, each time in a folder of its own."""
    rounds = []
    for _ in range(scenario.times):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(await scenario.measure(Path(folder)))
    return middle(rounds)


def main() -> None:
    """Measure everything."""
    rows: list[Row] = []
    scenarios = (*provider.SCENARIOS, *churn.SCENARIOS, *certify.SCENARIOS)
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
