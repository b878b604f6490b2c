"""Rows of bench/results.json for a running coordinator, as JSON on stdout; progress on stderr.

python -m bigfleet_lab.bench_coordinator [NAME...]     such as coordinator.report.200, or nothing
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from bigfleet_lab.bench.rows import Bar, print_rows
from bigfleet_lab.bench_coordinator import crowd, moving

COMMAND: Final = "make bench ONLY=coordinator"
ROWS: Final[Mapping[str, Bar]] = {
    "coordinator.report.200": Bar(crowd.reports, 20, "ms"),
    "coordinator.rebalance.200": Bar(crowd.rounds, 1, "s"),
    "coordinator.memory.200": Bar(crowd.memory, 300e6, "bytes"),
    "coordinator.move.100000": Bar(moving.adoption, 60, "s"),
}

if __name__ == "__main__":
    print_rows(ROWS, sys.argv[1:], COMMAND)
