"""Rows of bench/results.json for a running shard, as JSON on stdout; progress on stderr.

python -m bigfleet.cli.bench_shard [NAME...]     such as shard.cycle.5000, or nothing for all
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from bigfleet.cli.bench_shard import scenarios
from bigfleet.cli.bench_shard.scenarios import WrongResultError, quantiles
from bigfleet.cli.errors import FailureError

COMMAND: Final = "make bench ONLY=shard"
_steady = lru_cache(maxsize=1)(scenarios.steady)


def _cycle(machines: int) -> dict[str, Any]:
    return {"samples": _steady(machines)["cycle_ms"]}


def _hello() -> dict[str, Any]:
    return {"samples": _steady(500_000)["hello_ms"]}


def _memory() -> dict[str, Any]:
    found = _steady(500_000)
    if found["peak"] > 1.3e9:
        raise WrongResultError(f"it held {found['peak'] / 1e9:.2f} GB while the List came in")
    return {"value": found["memory"]}


Measure = Callable[[], dict[str, Any]]
ROWS: Final[Mapping[str, tuple[Measure, float, str, str]]] = {
    "shard.cycle.5000": (lambda: _cycle(5_000), 30, "ms", "lower"),
    "shard.cycle.50000": (lambda: _cycle(50_000), 100, "ms", "lower"),
    "shard.cycle.500000": (lambda: _cycle(500_000), 500, "ms", "lower"),
    "shard.hello.500000": (_hello, 100, "ms", "lower"),
    "shard.memory.500000": (_memory, 1e9, "bytes", "lower"),
    "shard.bindings.5000": (
        lambda: {"value": scenarios.bindings()["per_second"]}, 1_000, "per second", "higher",
    ),
    "shard.rollup-ack.1000": (
        lambda: {"samples": scenarios.many_sessions()["ack_ms"]}, 500, "ms", "lower",
    ),
    "shard.restart.50000": (lambda: {"value": scenarios.restart()["seconds"]}, 10, "s", "lower"),
}  # fmt: skip


def row(name: str) -> dict[str, Any]:
    """Measure one bar. A wrong result has no figure."""
    measure, bar, unit, better = ROWS[name]
    figures: dict[str, Any] = dict.fromkeys(("p50", "p95", "p99", "max", "value"))
    made = {"name": name, "unit": unit, "bar": bar, "better": better, "command": COMMAND}
    try:
        found = measure()
    except (WrongResultError, FailureError) as error:
        return {**made, **figures, "ok": False, "runs": 0, "complaint": str(error)}
    samples = found.get("samples", [])
    if samples:
        figures |= {key: round(value, 3) for key, value in quantiles(samples).items()}
    figures["value"] = found.get("value")
    figure = figures["p99"] if figures["value"] is None else figures["value"]
    ok = figure <= bar if better == "lower" else figure >= bar
    mean = sum(samples) / len(samples) if samples else figures["value"]
    spread = (sum((s - mean) ** 2 for s in samples) / len(samples)) ** 0.5 if samples else 0.0
    return {
        **made, **figures, "ok": bool(ok), "runs": max(1, len(samples)),
        "mean": round(mean, 3), "stddev": round(spread, 3),
    }  # fmt: skip


def main(names: list[str]) -> None:
    """Measure these, or all."""
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit(f"{unknown[0]!r} is no row: use one of {', '.join(ROWS)}")
    rows = []
    for name in names or ROWS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows.append(row(name))
    json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
