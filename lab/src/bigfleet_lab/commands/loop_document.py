"""A closed loop for programs: what `simulate loop` and `simulate demo` print as a document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigfleet_lab.simulate.loop import Loop


def loop_document(running: Loop) -> dict[str, object]:
    """Every cycle, and what came of all."""
    return {
        "scenario": running.world.scenario.name,
        "seed": running.seed,
        "cycles": [
            {
                "cycle": report.cycle,
                "actions": report.actions,
                "unmet": report.unmet,
                "under_way": report.under_way,
                "dollars_per_hour": round(report.dollars_per_hour, 6),
            }
            for report in running.reports
        ],
        "actions": dict(totals(running)),
        "unmet": running.reports[-1].unmet,
        "reclaims_at_unchanged_demand": running.reclaims_at_unchanged_demand,
        "over_acquisition": running.over_acquisition,
        "settled_at": running.settled_at,
    }


def totals(running: Loop) -> Counter[str]:
    """Actions of all cycles by kind."""
    found: Counter[str] = Counter()
    for report in running.reports:
        found.update(report.actions)
    return found
