"""How long a full certification takes: the in-tree fake, all profiles, as anybody would run it."""

import asyncio
import json
import sys
from pathlib import Path

from providerkit.bench.rows import Bar, Row, Scenario, expect, row

BEHAVIOURS = 122
MOST_SECONDS = 180.0


async def measure_certification(folder: Path) -> list[Row]:
    """Seconds of a run that must end CERTIFIED, with nothing skipped."""
    command = Path(sys.executable).with_name("bigfleet-conformance")
    process = await asyncio.create_subprocess_exec(
        *(str(command), "run", "--provider", "fake", "--profile", "all", "--port", "0"),
        *("--quiet", "--out", str(folder)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    code = await process.wait()
    expect((folder / "report.json").exists(), f"the suite ended with {code} and no report")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    summary = report["summary"]
    wrong = [found["id"] for found in report["behaviors"] if found["status"] != "passed"]
    expect(code == 0, f"{report['verdict']}: {', '.join(wrong) or 'the baseline'} did not pass")
    expect(summary["passed"] == BEHAVIOURS, f"{summary['passed']} behaviours passed")
    seconds = float(report["environment"]["duration_s"])
    return [row("conformance.full", [], MOST_SECONDS, value=seconds, unit="s")]


SCENARIOS = (Scenario(measure_certification, (Bar("conformance.full", 180.0, "s", "lower"),)),)
