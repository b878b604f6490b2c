"""The benchmarks of the specification, one per bar, by the names of the results file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bigfleet.inventory import Inventory, measure_memory
from bigfleet.inventory.memory import typical_machines
from bigfleet.model.columns import Symbols
from bigfleet_lab.bench import bars
from bigfleet_lab.bench.bench_worlds import measure_workload
from bigfleet_lab.simulate.workloads import need_count

PARTS: Final = ("engine",)
Row = dict[str, object]

_CYCLES: Final = {5_000: 200, 50_000: 100, 500_000: 50}
_FEW_RUNS: Final = 5
_FIRST_SIZE: Final = 50_000
_LARGE: Final = 500_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What one benchmark found: times, or a single figure; or only complaints."""

    times: Mapping[str, float] | None = None
    value: float | None = None
    mean: float = 0.0
    stddev: float = 0.0
    runs: int = 1
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bench:
    """One row of the results file."""

    name: str
    size: int
    unit: str
    bar: float
    command: str
    run: Callable[[], Figures]

    def row(self) -> Row:
        """Run it. A wrong result has no figure."""
        found = self.run()
        times = found.times or {}
        figure = times.get("p99", found.value)
        wrong = bool(found.complaints) or figure is None
        return {
            "name": self.name,
            "unit": self.unit,
            **{key: None if wrong else times.get(key) for key in ("p50", "p95", "p99", "max")},
            "value": None if wrong else found.value,
            "bar": self.bar,
            "better": "lower",
            "ok": figure is not None and not wrong and figure <= self.bar,
            "runs": found.runs,
            "mean": None if wrong else found.mean,
            "stddev": None if wrong else found.stddev,
            "command": self.command,
            **({"complaint": found.complaints[0]} if found.complaints else {}),
        }


def benchmarks() -> Iterator[Bench]:
    """Every benchmark of the engine, small ones first."""
    for (workload, size), bar in sorted(bars.CYCLE_BARS.items(), key=lambda item: item[0][1]):
        yield _cycle_bench(workload, size, bar)
    yield Bench(
        f"engine.per-need-gangs.{_FIRST_SIZE}",
        _FIRST_SIZE,
        "us",
        bars.PER_NEED_GANGS_US,
        _command("gangs", _FIRST_SIZE),
        lambda: _per_need("gangs", _FIRST_SIZE),
    )
    command = f"bigfleet bench first-cycle --machines {_FIRST_SIZE}"
    yield Bench(
        f"engine.first-cycle.{_FIRST_SIZE}",
        _FIRST_SIZE,
        "s",
        bars.FIRST_CYCLE_SECONDS,
        command,
        lambda: _first_cycles({}, _FEW_RUNS, warm_up=True),
    )
    yield Bench(
        f"engine.first-cycle-after-install.{_FIRST_SIZE}",
        _FIRST_SIZE,
        "s",
        bars.FIRST_CYCLE_AFTER_INSTALL_SECONDS,
        f"NUMBA_CACHE_DIR=$(mktemp -d) {command}",
        _first_cycle_after_install,
    )
    yield _memory_bench("engine.memory", "per_machine", bars.MACHINE_BYTES)
    yield _memory_bench("engine.memory-columns", "columns_per_machine", bars.COLUMN_BYTES)
    yield Bench(
        f"inventory.load.{_LARGE}",
        _LARGE,
        "s",
        bars.LOAD_SECONDS,
        f"bigfleet bench suite --output json --sizes {_LARGE}",
        _load,
    )


def outside_rows(part: str, command: str, *, quiet: bool) -> list[Row]:
    """The rows of a part that this package does not know; its command prints them as JSON."""
    done = subprocess.run(
        shlex.split(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
        check=False,
    )
    try:
        rows: list[Row] = json.loads(done.stdout)
    except ValueError:
        return [_nothing(part, command, f"{command} ended with {done.returncode} and no rows")]
    return rows


def _nothing(part: str, command: str, complaint: str) -> Row:
    figures = dict.fromkeys(("p50", "p95", "p99", "max", "value", "bar", "mean", "stddev"))
    return {"name": part, "unit": "", **figures, "better": "lower", "ok": False, "runs": 0,
            "command": command, "complaint": complaint}  # fmt: skip


def _command(workload: str, size: int) -> str:
    cycles = _CYCLES[size]
    return f"bigfleet bench engine --workload {workload} --machines {size} --cycles {cycles}"


def _cycle_bench(workload: str, size: int, bar: float) -> Bench:
    return Bench(
        f"engine.{workload}.{size}",
        size,
        "ms",
        bar,
        _command(workload, size),
        lambda: _cycles(workload, size),
    )


@lru_cache
def _cycles(workload: str, size: int) -> Figures:
    """Measured once, also when two results are made of it."""
    cycles = _CYCLES[size]
    found = measure_workload(workload, size, 1, None, 1)(cycles, 1, lambda: None)
    whole = found.whole
    return Figures(
        times=whole.summary(),
        mean=whole.mean_ms,
        stddev=whole.stddev_ms,
        runs=cycles,
        complaints=tuple(found.complaints),
    )


def _per_need(workload: str, size: int) -> Figures:
    found = _cycles(workload, size)
    needs = need_count(workload, size)
    assert found.times is not None
    return Figures(
        value=round(found.times["p99"] * 1e3 / needs, 3),
        mean=round(found.mean * 1e3 / needs, 3),
        stddev=round(found.stddev * 1e3 / needs, 3),
        runs=found.runs,
        complaints=found.complaints,
    )


def _first_cycles(environment: Mapping[str, str], runs: int, *, warm_up: bool) -> Figures:
    """Each in a process of its own."""
    command = [sys.executable, "-m", "bigfleet.cli.main", "bench", "first-cycle"]
    seconds = []
    for _ in range(runs + warm_up):
        done = subprocess.run(
            [*command, "--machines", str(_FIRST_SIZE)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return Figures(complaints=(" ".join(done.stderr.split())[-200:] or "no output",))
        seconds.append(float(done.stdout))
    return _single(seconds[warm_up:])


def _first_cycle_after_install() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        return _first_cycles({"NUMBA_CACHE_DIR": folder}, 1, warm_up=False)


def _memory_bench(name: str, key: str, bar: float) -> Bench:
    return Bench(
        f"{name}.{_LARGE}",
        _LARGE,
        "bytes per machine",
        bar,
        f"bigfleet bench suite --output json --sizes {_LARGE}",
        lambda: _single([_memory()[key]]),
    )


@lru_cache
def _memory() -> Mapping[str, float]:
    return measure_memory(_LARGE)


def _load() -> Figures:
    machines = list(typical_machines(_LARGE))
    seconds = []
    for _ in range(_FEW_RUNS):
        inventory = Inventory(Symbols())
        begin = time.perf_counter()
        inventory.load(machines)
        seconds.append(time.perf_counter() - begin)
    return _single(seconds)


def _single(values: list[float]) -> Figures:
    """One figure out of several runs: the worst of them, because it is held against a bar."""
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return Figures(
        value=round(max(values), 3),
        mean=round(mean, 3),
        stddev=round(deviation, 4),
        runs=len(values),
    )
