"""The files of a run: summary.json, report.html, samples.jsonl.gz, cycles.jsonl."""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from bigfleet_lab.gates.summary import SCHEMA, RunSummary
from bigfleet_lab.gates.verdict import judge
from bigfleet_lab.profiles.catalogue import PROFILES, SUBSTRATES, find
from bigfleet_lab.profiles.gate_rules import rules_for
from bigfleet_scaletest.local.preflight import estimated_bytes
from bigfleet_scaletest.local.run import LocalRun
from bigfleet_scaletest.provider.offerings import total
from bigfleet_scaletest.record.measure import measure, phase_figures, reported
from bigfleet_scaletest.results.report import page
from bigfleet_scaletest.run_options import PlannedRun

_UNFINISHED: Final = "the run did not come to its end"


def now_text() -> str:
    """This moment, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def identity(run: PlannedRun) -> dict[str, Any]:
    """Which run this is, and where."""
    options = run.options
    return {
        "schema": SCHEMA,
        "runId": f"{run.profile.name}-{int(time.time())}",
        "profile": run.profile.name,
        "revision": _revision(),
        "startedAt": now_text(),
        "seed": options.seed,
        "overrides": {**run.profile.overrides, **options.settings},
        "inputs": {
            "profile": _hash(find("profile", PROFILES, options.profile)),
            "substrate": _hash(find("substrate", SUBSTRATES, options.substrate)),
        },
        "target": {"context": "this machine", "kind": run.substrate.type},
        "host": _host(),
        "cost": {"estimatedUsd": 0.0, "hours": 0.0},
    }


def summarise(
    run: PlannedRun, which: Mapping[str, Any], local: LocalRun | None, broken: str
) -> RunSummary:
    """The summary of a run, as far as it came."""
    summary = RunSummary(
        which,
        broken=broken or (_UNFINISHED if local is None or not local.ended_unix_s else ""),
        full_size=not run.options.ci and run.options.scale_factor == 1.0,
        ended_at=now_text(),
        scale=_scale(run),
    )
    if local is not None and local.faults is not None:
        summary.actions = local.faults.results
    if local is None or not local.ended_unix_s:
        return summary
    window = local.window()
    skip = {each.gate: each.reason for each in (*run.substrate.skip, *run.profile.slo.skip)}
    summary.verdict = judge(
        rules_for(run.profile),
        measure(window),
        skip,
        enforce_goals=run.profile.slo.goals == "enforce",
    )
    summary.phases, summary.reported = phase_figures(window), reported(window)
    return summary


def write_all(folder: Path, summary: RunSummary, local: LocalRun) -> None:
    """Every file of a run."""
    summary.write(folder / "summary.json")
    with gzip.open(folder / "samples.jsonl.gz", "wt", encoding="utf-8") as sink:
        sink.writelines(f"{sample.line()}\n" for sample in local.samples)
    with (folder / "cycles.jsonl").open("w", encoding="utf-8") as sink:
        sink.writelines(f"{json.dumps(cycle)}\n" for cycle in local.cycles)
    shards = [each.name for each in local.layout.shards]
    faults = local.faults.fired if local.faults else []
    text = page(summary.document(), local.samples, local.cycles, shards, faults)
    (folder / "report.html").write_text(text, encoding="utf-8")


def _scale(run: PlannedRun) -> dict[str, Any]:
    profile = run.profile
    seeds = [total(run, shard) for shard in range(profile.shards)]
    return {
        "machines": profile.machines, "effectiveMachines": run.fleet.effective,
        "totalCrs": run.fleet.pods, "objects": len(run.fleet.objects),
        "simulatedClusters": run.fleet.clusters, "kubeClusters": run.substrate.kube_clusters,
        "shardReplicas": profile.shards, "coordinatorReplicas": profile.coordinators,
        "seedMachinesPerShard": seeds, "aggregateInventory": sum(seeds),
        "factor": run.options.scale_factor, "estimatedBytes": round(estimated_bytes(run)),
    }  # fmt: skip


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    here = Path(__file__).parent
    found = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def _host() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "cores": os.cpu_count(), "memoryGiB": round(memory, 1), "machine": platform.machine(),
        "loadAverage": round(os.getloadavg()[0], 1),
    }  # fmt: skip
