"""The results file: rows, the facts of the machine they were measured on, and the commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bigfleet.cli.output import out, plain, table
from bigfleet_lab.bench.suite import Row


def results_document(rows: Sequence[Row]) -> dict[str, object]:
    """What bench/results.json holds."""
    return {"machine": machine_facts(), "commit": commit(), "results": list(rows)}


def with_earlier(rows: Sequence[Row], path: Path) -> list[Row]:
    """These rows, and those of the file that were not measured now, each with its own commit.

    A part measured alone must not throw away what the other parts' rows say.
    """
    now = commit()
    measured = [{**row, "commit": now} for row in rows]
    names = {row["name"] for row in rows}
    return [row for row in _rows_of(path) if row["name"] not in names] + measured


def _rows_of(path: Path) -> list[Row]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    earlier: list[Row] = document.get("results", [])
    said = document.get("commit", "")
    return [{"commit": said, **row} for row in earlier]


def machine_facts() -> dict[str, object]:
    """What a reader must know to compare figures."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


def commit() -> str:
    """The commit of the checkout the code lies in; marked when there are changes beside it."""
    here = Path(__file__).parents[1]

    def git(*words: str) -> str:
        try:
            done = subprocess.run(
                ["git", *words], cwd=here, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return ""
        return done.stdout.strip()

    head = git("rev-parse", "HEAD")
    return f"{head}+changes" if head and git("status", "--porcelain", "--", ".") else head


def print_results(rows: Sequence[Row]) -> None:
    """The table a person reads, and below it what went wrong."""
    made = table("!", "p50>", "p99>", "max>", "value>", "bar>", "unit!", "", title="Results")
    for row in rows:
        good = bool(row["ok"])
        said = "ok" if good else "wrong" if "complaint" in row else "slow"
        made.add_row(
            plain(str(row["name"])),
            *(_number(row[key]) for key in ("p50", "p99", "max", "value", "bar")),
            plain(str(row["unit"])),
            plain(said, "green" if good else "red"),
        )
    out.print(made)
    for row in rows:
        if "complaint" in row:
            out.print(plain(f"{row['name']}: {row['complaint']}"))


def _number(value: object) -> str:
    if not isinstance(value, int | float):
        return ""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
