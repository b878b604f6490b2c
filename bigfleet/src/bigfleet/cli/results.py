"""The results file: rows, the facts of the machine they were measured on, and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bigfleet.cli.output import out, plain, table
from bigfleet.cli.suite import Row


def results_document(rows: Sequence[Row]) -> dict[str, object]:
    """What bench/results.json holds."""
    return {"machine": machine_facts(), "commit": commit(), "results": list(rows)}


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
    """The table a person reads."""
    made = table("", "p50>", "p99>", "max>", "value>", "bar>", "unit", "", title="Results")
    for row in rows:
        good = bool(row["ok"])
        made.add_row(
            plain(str(row["name"])),
            *(_number(row[key]) for key in ("p50", "p99", "max", "value", "bar")),
            plain(str(row["unit"])),
            plain("ok" if good else str(row.get("complaint", "slow")), "green" if good else "red"),
        )
    out.print(made)


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
