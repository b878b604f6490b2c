"""The gates of one run: those that every run has, and those whose cause is in the profile."""

from __future__ import annotations

from typing import Final

from bigfleet_lab.gates.catalogue import GATES
from bigfleet_lab.gates.verdict import GateRule
from bigfleet_lab.profiles.model import ScaleProfile

_CYCLE_GOALS: Final = ((5_000, 0.030, 0.003), (50_000, 0.100, 0.008), (10**9, 0.500, 0.050))
"""Machines up to which: seconds of a cycle, seconds of a decision."""


def rules_for(profile: ScaleProfile) -> list[GateRule]:
    """The rules of a profile."""
    slo, load = profile.slo, profile.load
    sheds = bool(load.scale_downs)
    moves = sheds or bool(load.bursts or load.demand_steps or slo.expect_preemptions)
    most_reclaims = slo.max_reclaims if slo.max_reclaims is not None else None if moves else 0.0
    slos: dict[str, float | None] = {
        "shardsReportingCycle": float(profile.shards),
        "reclaimActionsDuringSoak": most_reclaims,
        "reclaimsUnforced": slo.max_unforced,
        "releasedRatio": slo.min_released_ratio,
        "reclaimsPerReleased": slo.max_reclaims_per_released,
        "shardShortfallsDelta": slo.shortfall_stability_max,
        "costRoutingMisrouted": slo.misrouted_max,
        "shardShortfalls": None if slo.expect_standing_shortfall or slo.expect_preemptions else 0.0,
        **slo.thresholds,
    }
    wanted = {name for name, gate in GATES.items() if gate.always} | _caused(profile)
    goals = _goals(profile)
    found = []
    for name in GATES:
        if name in wanted:
            usual = GATES[name].threshold(slo.dev)
            found.append(
                GateRule(
                    GATES[name],
                    slos.get(name, usual),
                    goals.get(name, GATES[name].goal),
                )
            )
    return found


def _caused(profile: ScaleProfile) -> set[str]:
    slo, load = profile.slo, profile.load
    kinds = [each.action for each in profile.actions]
    causes = {
        "shardShortfallsDelta": slo.expect_standing_shortfall,
        "shortfallAboveLowestClass": bool(slo.shortfall_confined_below),
        "preemptActions": slo.expect_preemptions,
        "costRoutingCorrect": slo.expect_cost_routing,
        "costRoutingMisrouted": slo.expect_cost_routing,
        "burstCoveredSeconds": bool(load.bursts),
        "releasedRatio": bool(load.scale_downs),
        "reclaimsPerReleased": bool(load.scale_downs),
        "coordinatorFailoverSeconds": "kill-coordinator-leader" in kinds,
        "shardRestartToFirstDecisionSeconds": any(k.startswith("kill-shard-") for k in kinds),
    }
    return {name for name, applies in causes.items() if applies}


def _goals(profile: ScaleProfile) -> dict[str, float]:
    per_shard = profile.machines / profile.shards
    cycle, decision = next((c, d) for most, c, d in _CYCLE_GOALS if per_shard <= most)
    return {"shardCycleDurationP99Seconds": cycle, "shardDecisionP99Seconds": decision}
