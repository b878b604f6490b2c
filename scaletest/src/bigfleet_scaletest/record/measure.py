"""The measured window as gate values: from the settle mark to the end of the soak.

Cycle figures are exact, from every cycle of every shard. Figures of histograms are the bucket that
holds the quantile, and its upper bound is what counts. What cannot be computed is left out, so its
gate is unmeasured and fails the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from bigfleet_lab.gates.quantiles import bucket_quantile, distribution, quantile
from bigfleet_lab.gates.verdict import GateMeasurement
from bigfleet_lab.profiles.fleet_plan import FleetPlan
from bigfleet_lab.profiles.model import ScaleProfile
from bigfleet_scaletest.record.samples import (
    FleetSample,
    Series,
    buckets_grown,
    counter,
    grown,
    total,
)

PHASES: Final = (
    "ingest", "reconcile", "snapread", "normalise", "phase1", "phase2", "phase3", "emit", "execute",
)  # fmt: skip
DECISION: Final = ("normalise", "phase1", "phase2", "phase3")
_GRACE_SECONDS: Final = 60.0
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """What was seen between two moments."""

    profile: ScaleProfile
    plan: FleetPlan
    began_unix_s: float
    """The settle mark."""
    soak_unix_s: float
    ended_unix_s: float
    samples: Sequence[FleetSample]
    cycles: Sequence[Mapping[str, Any]]
    shards: tuple[str, ...]
    coordinators: tuple[str, ...]
    providers: tuple[str, ...]
    disturbed_unix_s: tuple[tuple[str, float], ...] = ()
    """Processes struck, and when."""
    actions_measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.ended_unix_s - self.began_unix_s

    def inside(self) -> list[FleetSample]:
        """Samples of the window."""
        return [s for s in self.samples if self.began_unix_s <= s.unix_s <= self.ended_unix_s]

    def cycles_of(self, shard: str) -> list[Mapping[str, Any]]:
        """Cycles of one shard that began in the window."""
        return [
            c for c in self.cycles
            if c["shard"] == shard
            and self.began_unix_s <= c["start_unix_nanos"] / 1e9 <= self.ended_unix_s
        ]  # fmt: skip

    def calm(self, unix_s: float) -> bool:
        """Whether no action, burst or step happened within the minute before."""
        load = self.profile.load
        moments = [at for _, at in self.disturbed_unix_s]
        offsets = [each.at_seconds for each in (*load.scale_downs, *load.demand_steps)]
        for burst in load.bursts:
            offsets += [burst.at_seconds, burst.at_seconds + burst.duration_seconds]
        moments += [self.soak_unix_s + offset for offset in offsets]
        return not any(0 <= unix_s - moment <= _GRACE_SECONDS for moment in moments)


def measure(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    """A value for every gate that has one."""
    found = {
        **_load(window),
        **_cycles(window),
        **_delivery(window),
        **_shortfalls(window),
        **_reclaims(window),
        **_ends(window),
        **_causes(window),
    }
    for gate, seconds in window.actions_measured.items():
        found[gate] = GateMeasurement(seconds, source="actions, own probes")
    return found


def _load(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    seen = [s.load for s in window.inside() if s.load]
    if not seen:
        return {}
    lowest = min(each["active"] / max(1, each["target"]) for each in seen)
    drops = seen[-1]["dropped"] - seen[0]["dropped"]
    acks = [value for each in seen for value in each["ack_s"]]
    made = [value for each in seen for value in each["rollup_s"]]
    source = "simulated clusters"
    return {
        "loadgenCRsActive": GateMeasurement(lowest, len(seen), source),
        "operatorOutboxDropsPerSec": GateMeasurement(drops / window.seconds, len(seen), source),
        "operatorAckP99Seconds": GateMeasurement(quantile(acks, 0.99), len(acks), source),
        "operatorRollupP99Seconds": GateMeasurement(quantile(made, 0.99), len(made), source),
    }


def _cycles(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    per_shard = [window.cycles_of(shard) for shard in window.shards]
    reporting = _reporting(window)
    found = {}
    if reporting is not None:
        found["shardsReportingCycle"] = GateMeasurement(
            reporting, sum(map(len, per_shard)), "/debug/cycles"
        )
    least = min(map(len, per_shard))
    if not least:
        return found
    walls = [quantile([c["wall_ns"] / 1e9 for c in each], 0.99) for each in per_shard]
    decisions = [quantile([_decision(c) for c in each], 0.99) for each in per_shard]
    worst = max(w for w in walls if w is not None)
    found["shardCycleDurationP99Seconds"] = GateMeasurement(worst, least, "/debug/cycles")
    decided = max(d for d in decisions if d is not None)
    found["shardDecisionP99Seconds"] = GateMeasurement(decided, least, "/debug/cycles")
    return found


def _decision(cycle: Mapping[str, Any]) -> float:
    return sum(float(cycle["phases"][phase]) for phase in DECISION) / 1e9


def _reporting(window: MeasuredWindow) -> float | None:
    """Shards with a cycle, in the whole minute with the fewest; a killed one counts in its own."""
    starts = {
        shard: [c["start_unix_nanos"] / 1e9 for c in window.cycles_of(shard)]
        for shard in window.shards
    }
    minutes = int(window.seconds // _MINUTE)
    counts = []
    for number in range(minutes):
        low = window.began_unix_s + number * _MINUTE
        counts.append(
            sum(
                any(low <= at < low + _MINUTE for at in starts[shard])
                or any(
                    shard == struck and low - _GRACE_SECONDS <= at < low + _MINUTE
                    for struck, at in window.disturbed_unix_s
                )
                for shard in window.shards
            )
        )
    if not counts and window.seconds > 0:
        counts = [sum(bool(each) for each in starts.values())]
    return float(min(counts)) if counts else None


def _delivery(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    inside, found = window.inside(), {}
    worst = None
    for shard in window.shards:
        buckets = buckets_grown(inside, shard, "bigfleet_shard_configure_phase_seconds")
        held = bucket_quantile(buckets, 0.99)
        if held is not None and (worst is None or held.hi > worst.hi):
            worst = held
    if worst is not None:
        found["shardConfigurePhaseP99Seconds"] = GateMeasurement(
            worst.hi, worst.samples, "bigfleet_shard_configure_phase_seconds", worst.lo, worst.hi
        )
    name = "bigfleet_shard_action_execute_outcomes_total"
    ended = _sum(inside, window.shards, lambda s: _bootstraps(s, name, ""))
    good = _sum(inside, window.shards, lambda s: _bootstraps(s, name, 'outcome="success"'))
    if ended:
        found["bootstrapSuccessRatio"] = GateMeasurement((good or 0.0) / ended, round(ended), name)
    return found


def _bootstraps(series: Series, name: str, outcome: str) -> float | None:
    wanted = [
        value
        for key, value in series.items()
        if key.startswith(f"{name}{{") and 'kind="Bootstrap"' in key and outcome in key
    ]
    return sum(wanted) if wanted else None


def _sum(samples: Sequence[FleetSample], processes: Iterable[str], value: Any) -> float | None:
    """Growth over all processes; None where one of them was not seen twice."""
    found = [grown(samples, process, value) for process in processes]
    known = [each for each in found if each is not None]
    return sum(known) if known and len(known) == len(found) else None


def _shortfalls(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    sums: list[tuple[float, float]] = []
    above: list[float] = []
    for sample in window.inside():
        values = [
            total(sample.processes[s], "bigfleet_shard_shortfalls")
            for s in window.shards
            if s in sample.processes
        ]
        known = [value for value in values if value is not None]
        if len(known) < len(window.shards):
            continue
        sums.append((sample.unix_s, sum(known)))
        above.append(sum(_above_batch(sample.processes[s]) for s in window.shards))
    calm = [value for at, value in sums if window.calm(at)]
    if not calm:
        return {}
    name = "bigfleet_shard_shortfalls"
    return {
        "shardShortfalls": GateMeasurement(max(calm), len(calm), name),
        "shardShortfallsDelta": GateMeasurement(max(calm) - min(calm), len(calm), name),
        "shortfallAboveLowestClass": GateMeasurement(
            max(above), len(above), "bigfleet_shard_shortfalls_by_priority"
        ),
    }


def _above_batch(series: Series) -> float:
    name = "bigfleet_shard_shortfalls_by_priority"
    return sum(
        value
        for key, value in series.items()
        if key.startswith(name) and ('"critical"' in key or '"service"' in key)
    )


def _reclaims(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    cycles = [c for shard in window.shards for c in window.cycles_of(shard)]
    inside, found = window.inside(), {}
    if cycles:
        count = sum(c["actions"].get("Reclaim", 0) for c in cycles)
        found["reclaimActionsDuringSoak"] = GateMeasurement(count, len(cycles), "/debug/cycles")
        preempts = sum(c["actions"].get("Preempt", 0) for c in cycles)
        found["preemptActions"] = GateMeasurement(preempts, len(cycles), "/debug/cycles")
    name = "bigfleet_shard_reclaims_unforced_total"
    unforced = _sum(inside, window.shards, counter(name))
    if unforced is not None:
        found["reclaimsUnforced"] = GateMeasurement(unforced, len(inside), name)
    return found


def _ends(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    inside, found = window.inside(), {}
    applied = "bigfleet_coordinator_apply_total"
    every = _sum(inside, window.coordinators, counter(applied))
    good = _sum(inside, window.coordinators, counter(applied, 'outcome="success"'))
    if every:
        found["coordinatorApplyErrorRate"] = GateMeasurement(
            1 - (good or 0.0) / every, round(every), applied
        )
    phantom = [
        sum(
            total(sample.processes[s], "bigfleet_shard_phantom_machines") or 0
            for s in window.shards
        )
        for sample in inside
        if window.calm(sample.unix_s) and set(window.shards) <= set(sample.processes)
    ]
    if phantom:
        found["phantomMachines"] = GateMeasurement(
            max(phantom), len(phantom), "bigfleet_shard_phantom_machines"
        )
    last = window.samples[-1].processes if window.samples else {}
    orphans = [total(last.get(p, {}), "bigfleet_provider_orphan_hosts") for p in window.providers]
    known = [each for each in orphans if each is not None]
    if known and len(known) == len(orphans):
        found["orphanHosts"] = GateMeasurement(sum(known), 1, "bigfleet_provider_orphan_hosts")
    return found


def configured(sample: FleetSample, shards: Iterable[str], state: str = "Configured") -> float:
    """Machines of all shards in a state."""
    name = "bigfleet_shard_inventory_machines"
    return sum(total(sample.processes.get(s, {}), name, f'state="{state}"') or 0 for s in shards)


def _causes(window: MeasuredWindow) -> dict[str, GateMeasurement]:
    """Sheds: what was given back, over what the shed pods needed."""
    downs = window.profile.load.scale_downs
    inside = window.inside()
    if not downs or not inside:
        return {}
    struck = window.soak_unix_s + downs[0].at_seconds
    before = [configured(s, window.shards) for s in inside if s.unix_s <= struck]
    if not before:
        return {}
    released = before[-1] - configured(inside[-1], window.shards)
    shed = sum(window.plan.machines.values()) * (1 - downs[-1].target_multiplier)
    cycles = [c for shard in window.shards for c in window.cycles_of(shard)]
    reclaims = sum(c["actions"].get("Reclaim", 0) for c in cycles)
    found = {"releasedRatio": GateMeasurement(released / max(1.0, shed), len(inside), "inventory")}
    if released > 0:
        found["reclaimsPerReleased"] = GateMeasurement(reclaims / released, len(cycles), "cycles")
    return found


def phase_figures(window: MeasuredWindow) -> dict[str, Any]:
    """Exact quantiles of cycles, decisions and phases, in seconds, over all shards."""
    cycles = [c for shard in window.shards for c in window.cycles_of(shard)]
    figures: dict[str, Any] = {
        "cycle": distribution([c["wall_ns"] / 1e9 for c in cycles]),
        "cycleCpu": distribution([c["cpu_ns"] / 1e9 for c in cycles]),
        "decision": distribution([_decision(c) for c in cycles]),
    }
    for phase in PHASES:
        figures[phase] = distribution([c["phases"].get(phase, 0) / 1e9 for c in cycles])
    return figures


def reported(window: MeasuredWindow) -> dict[str, Any]:
    """Figures without a gate."""
    inside = window.inside()
    if not inside:
        return {}
    everyone = (*window.shards, *window.coordinators, *window.providers)
    name = "process_resident_memory_bytes"
    memory = {
        process: [
            total(s.processes[process], name)
            for s in (inside[0], inside[-1])
            if process in s.processes
        ]
        for process in everyone
    }
    machines = [configured(sample, window.shards) for sample in inside]
    bound = [sample.load["bound"] for sample in inside if sample.load]
    return {
        "configuredMachines": {"min": min(machines), "max": max(machines)},
        "boundPods": {"min": min(bound, default=None), "max": max(bound, default=None)},
        "residentBytes": {
            p: [v for v in values if v and isfinite(v)] for p, values in memory.items()
        },
        "bootstraps": _sum(
            inside, window.shards, counter("bigfleet_shard_actions_total", 'kind="Bootstrap"')
        ),
        "provisions": _sum(
            inside, window.shards, counter("bigfleet_shard_actions_total", 'kind="Provision"')
        ),
    }
