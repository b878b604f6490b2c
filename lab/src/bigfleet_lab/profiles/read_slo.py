"""The block "slo" of a profile: thresholds, what is expected, and gates that are left out."""

from __future__ import annotations

from typing import Final

from bigfleet_lab.gates.catalogue import GATES
from bigfleet_lab.profiles.document import FileFields
from bigfleet_lab.profiles.model import SkippedGate, SloRules

THRESHOLDS: Final = {
    "shardCycleDurationP99Seconds": "shardCycleDurationP99Seconds",
    "shardConfigurePhaseP99Seconds": "shardConfigurePhaseP99Seconds",
    "bootstrapSuccessRatio": "bootstrapSuccessRatio",
    "operatorNodeStateUpdateP99Seconds": "operatorNodeStateUpdateP99Seconds",
    "operatorRollupP99Seconds": "operatorRollupP99Seconds",
    "operatorAckP99Seconds": "operatorAckP99Seconds",
    "endToEndPodBindP50Seconds": "endToEndPodBindP50Seconds",
    "coordinatorApplyErrorRate": "coordinatorApplyErrorRate",
}


def read_slo(fields: FileFields) -> SloRules:
    """The rules of one profile."""
    dev = fields.flag("dev")
    made = SloRules(
        dev=dev,
        thresholds=_thresholds(fields, dev),
        max_reclaims=fields.optional_number("maxReclaimActionsDuringSoak", low=0),
        max_unforced=fields.number("maxUnforcedReclaims", low=0),
        min_released_ratio=fields.number("minReleasedRatio", 0.95, low=0, high=1),
        max_reclaims_per_released=fields.number("maxReclaimsPerReleased", 1.1, low=1),
        expect_standing_shortfall=fields.flag("expectStandingShortfall"),
        shortfall_stability_max=fields.number("shortfallStabilityMax", low=0),
        shortfall_confined_below=_confined(fields),
        expect_preemptions=fields.flag("expectPreemptions"),
        expect_cost_routing=fields.flag("expectCostRouting"),
        misrouted_max=fields.number("costRoutingMisroutedMax", low=0),
        tolerant_bucket=fields.text("costRoutingTolerantPenaltyBucket", "0"),
        sensitive_bucket=fields.text("costRoutingSensitivePenaltyBucket", "8"),
        goals=fields.choice("goals", "report", ("enforce", "report")),
        skip=read_skips(fields),
    )
    # Accepted, reported, gates nothing.
    fields.optional_number("internalBindingLatencyP99Seconds", low=0)
    fields.finish()
    return made


def read_skips(fields: FileFields) -> tuple[SkippedGate, ...]:
    """Gates that are left out, each with a reason."""
    found = []
    for each in fields.entries("skip"):
        gate, reason = each.choice("gate", "", GATES), each.text("reason")
        each.finish()
        found.append(SkippedGate(gate, reason))
    return tuple(found)


def _thresholds(fields: FileFields, dev: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, gate in THRESHOLDS.items():
        value = fields.optional_number(key, low=0)
        if value is None:
            continue
        usual = GATES[gate].threshold(dev)
        assert usual is not None
        looser = value < usual if GATES[gate].at_least else value > usual
        if looser:
            raise fields.error(
                f"slo.{key} is {value:g}: a profile may tighten {usual:g}, not loosen it"
                + (
                    ""
                    if dev or GATES[gate].dev_slo is None
                    else "; set slo.dev: true for the wider one"
                ),
                key,
            )
        found[gate] = value
    return found


def _confined(fields: FileFields) -> str:
    if "shortfallConfinedBelowPriorityClass" not in fields:
        return ""
    return fields.choice(
        "shortfallConfinedBelowPriorityClass", "", ("critical", "service", "batch", "other")
    )
