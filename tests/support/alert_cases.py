"""For every alert a series that fires it and one that leaves it quiet, in promtool's notation.

`0+60x120` is 0, 60, 120 and so on, 120 steps; `5x120` stays 5. A step is a minute unless a case
says otherwise, and so is the time at which promtool looks. `labels` are those of the alert besides
its severity. Running promtool is left to the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Series = Mapping[str, str]
SHARD: Final = {"pod": "shard-0"}
POD: Final = 'pod="shard-0"'


@dataclass(frozen=True, slots=True)
class Case:
    """One alert: what fires it, what does not, and when that is looked at."""

    fires: Series
    quiet: Series
    labels: Mapping[str, str] = field(default_factory=dict)
    at: int = 60
    step: int = 1


def level(metric: str, high: float, low: float, labels: Mapping[str, str], at: int = 60) -> Case:
    """A gauge that stands at one value or at another."""
    name = f"{metric}{{{_inside(labels)}}}"
    return Case({name: f"{high:g}x{at}"}, {name: f"{low:g}x{at}"}, labels, at)


def summed(metric: str, high: float, low: float, quiet: str = "", at: int = 60) -> Case:
    """A gauge whose sum is looked at, so that no label is left. `quiet` is another series."""
    return Case({metric: f"{high:g}x{at}"}, {quiet or metric: f"{low:g}x{at}"}, {}, at)


def counted(
    metric: str,
    fast: str,
    slow: str,
    labels: Mapping[str, str],
    kept: Mapping[str, str] | None = None,
) -> Case:
    """A counter that grows so much in a minute, or so little."""
    name = f"{metric}{{{_inside(labels)}}}"
    return Case({name: f"{fast}x60"}, {name: f"{slow}x60"}, labels if kept is None else kept)


def timed(metric: str, bound: float, by: Mapping[str, str] | None = None) -> Case:
    """A histogram whose observations are all above a bound, or all below."""

    def of(below: int) -> Series:
        labels = {**(by or {})}
        rising = {f"{bound:g}": f"0+{below}x60", f"{bound * 2:g}": "0+60x60", "+Inf": "0+60x60"}
        return {
            f"{metric}_bucket{{{_inside({**labels, 'le': le})}}}": values
            for le, values in rising.items()
        }

    return Case(of(0), of(60), by or {})


def _inside(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{value}"' for key, value in labels.items())


def _aged(metric: str, at: int, labels: Mapping[str, str]) -> Case:
    """A time that stands still, or goes with the clock."""
    name = f"{metric}{{{_inside(labels)}}}"
    return Case({name: f"0x{at}"}, {name: f"0+60x{at}"}, labels, at)


def _phases() -> Case:
    """A day and a bit in steps of five minutes: a phase that is ten times slower since an hour."""
    metric = "bigfleet_shard_cycle_phase_duration_seconds_bucket"

    def of(fast: str) -> Series:
        rising = {"0.1": fast, "1": "0+60x320", "+Inf": "0+60x320"}
        return {f'{metric}{{phase="emit",le="{le}"}}': values for le, values in rising.items()}

    return Case(of("0+60x290 17400x30"), of("0+60x320"), {"phase": "emit"}, 1580, 5)


ENDED: Final = "bigfleet_shard_action_execute_outcomes_total"
CALLS: Final = "bigfleet_shard_provider_rpc_total"
APPLIED: Final = "bigfleet_coordinator_apply_total"
INVENTORY: Final = "bigfleet_shard_inventory_machines"
PINNED: Final = {
    "capacity_type": "Spot",
    "state": "Configured",
    "interruption_penalty_bucket": "pinned",
}
PROVIDER: Final = {"provider": "aws", "region": "eu-1"}
RELEASED: Final = f"bigfleet_shard_idle_releases_total{{{POD}}}"
BOUGHT: Final = f'bigfleet_shard_actions_total{{kind="Provision",{POD}}}'
OLDEST: Final = 'bigfleet_provider_transition_age_max_seconds{kind="create"}'
LIMIT: Final = 'bigfleet_provider_transition_timeout_seconds{kind="create"}'
SPEND: Final = "bigfleet_shard_spend_dollars_per_hour"

CASES: Final[Mapping[str, Case]] = {
    "ShardDown": level("up", 0, 1, {"job": "bigfleet-shard", "instance": "a"}),
    "ShardStalled": _aged("bigfleet_shard_last_cycle_timestamp_seconds", 10, SHARD),
    "CycleSlow": timed("bigfleet_shard_cycle_duration_seconds", 1, SHARD),
    "CycleTooSlow": timed("bigfleet_shard_cycle_duration_seconds", 5, SHARD),
    "PhaseRegression": _phases(),
    "Shortfall": level("bigfleet_shard_shortfalls", 2, 0, SHARD),
    "ShortfallHighPriority": summed(
        'bigfleet_shard_shortfalls_by_priority{priority_class="critical"}', 1, 9,
        'bigfleet_shard_shortfalls_by_priority{priority_class="batch"}',
    ),
    "ShortfallAged": summed(
        'bigfleet_shard_shortfalls_aged{bucket="60-299"}', 1, 9,
        'bigfleet_shard_shortfalls_aged{bucket="10-59"}',
    ),
    "PreemptionChurn": counted(
        "bigfleet_shard_actions_total", "0+12", "0+3", {"kind": "Preempt"}, {}
    ),
    "UnforcedReclaim": counted("bigfleet_shard_reclaims_unforced_total", "0+1", "7+0", SHARD),
    "ReclaimCapEngaged": counted("bigfleet_shard_reclaims_capped_total", "0+1", "7+0", SHARD),
    "RollupQuarantined": level("bigfleet_shard_rollup_quarantined", 1, 0, {"cluster": "c-1"}),
    "RollupRejected": counted(
        "bigfleet_shard_rollups_rejected_total", "0+1", "7+0", {"cluster": "c-1"}
    ),
    "ClustersFrozen": level("bigfleet_shard_clusters_frozen", 1, 0, SHARD),
    "DecisionDiscarded": counted("bigfleet_shard_decisions_discarded_total", "0+1", "7+0", SHARD),
    "RollupOverLimit": counted(
        "bigfleet_shard_rollups_over_limit_total",
        "0+1",
        "7+0",
        {"cluster": "c-1", "limit": "rows"},
    ),
    "RollupStale": level("bigfleet_shard_rollup_age_seconds", 121, 120, {"stat": "max"}),
    "ActuationPaused": level("bigfleet_shard_actuation_paused", 1, 0, SHARD),
    "PhantomMachines": summed('bigfleet_shard_phantom_machines{reason="absent"}', 1, 0),
    "MassLossHeld": level("bigfleet_shard_provider_removals_held", 40, 0, PROVIDER),
    "PhantomNodes": level("bigfleet_operator_phantom_nodes", 1, 0, {"cluster": "c-1"}),
    "PinnedOnSpot": level(INVENTORY, 1, 0, PINNED),
    "IdleChurn": Case(
        {RELEASED: "0+3x120", BOUGHT: "0+3x120"},
        {RELEASED: "0+3x120", BOUGHT: "7x120"},
        SHARD, 90,
    ),
    "IdentityRejected": counted(
        "bigfleet_shard_session_identity_rejected_total", "0+1", "7+0", SHARD
    ),
    "CertificateExpiring": level(
        "bigfleet_tls_certificate_expiry_timestamp_seconds", 600_000, 900_000,
        {"role": "server"}, 90,
    ),
    "Fenced": counted(ENDED, "0+1", "7+0", {"kind": "Bootstrap", "outcome": "fenced"}),
    "BootstrapFailing": Case(
        {f'{ENDED}{{kind="Bootstrap",outcome="{o}"}}': f"0+{n}x60"
         for o, n in (("success", 90), ("no_session", 10))},
        {f'{ENDED}{{kind="Bootstrap",outcome="{o}"}}': f"0+{n}x60"
         for o, n in (("success", 999), ("no_session", 1))},
    ),
    "ActionsDropped": counted("bigfleet_shard_actions_dropped_total", "0+1", "7+0", SHARD),
    "TransitionStuck": Case(
        {OLDEST: "700x60", LIMIT: "600x60"}, {OLDEST: "650x60", LIMIT: "600x60"},
        {"kind": "create"},
    ),
    "FailedGrowing": Case(
        {f'{INVENTORY}{{state="Failed"}}': "2x60 20x60"},
        {f'{INVENTORY}{{state="Failed"}}': "2x60 5x60"},
        {}, 100,
    ),
    "ProviderErrors": Case(
        {f'{CALLS}{{code="OK"}}': "0+90x60", f'{CALLS}{{code="UNAVAILABLE"}}': "0+10x60"},
        {f'{CALLS}{{code="OK"}}': "0+99x60", f'{CALLS}{{code="UNAVAILABLE"}}': "0+1x60"},
    ),
    "ProviderSlow": timed(
        "bigfleet_shard_provider_rpc_duration_seconds", 10, {"method": "Create"}
    ),
    "ReconcileStale": level("bigfleet_shard_provider_reconcile_age_seconds", 121, 60, PROVIDER),
    "ProviderDown": level("up", 0, 1, {"job": "bigfleet-provider", "instance": "a"}),
    "ProviderReconcileStale": _aged(
        "bigfleet_provider_reconcile_last_success_timestamp_seconds", 30, {"pod": "p-0"}
    ),
    "PricesStale": _aged(
        "bigfleet_provider_price_last_success_timestamp_seconds", 420, {"pod": "p-0"}
    ),
    "Stockout": level("bigfleet_shard_stockouts_cooling", 1, 0, SHARD),
    "ProviderThrottled": counted(
        "bigfleet_provider_api_throttles_total", "0+12", "0+3", {"op": "RunInstances"}
    ),
    "OrphanHosts": level("bigfleet_provider_orphan_hosts", 1, 0, {"pod": "p-0"}),
    "CoordinatorDown": level("up", 0, 1, {"job": "bigfleet-coordinator", "instance": "a"}),
    "NoLeader": summed('bigfleet_coordinator_is_leader{pod="c-0"}', 0, 1),
    "TwoLeaders": Case(
        {f'bigfleet_coordinator_is_leader{{pod="c-{n}"}}': "1x60" for n in (0, 1)},
        {f'bigfleet_coordinator_is_leader{{pod="c-{n}"}}': f"{1 - n}x60" for n in (0, 1)},
    ),
    "LeaderFlapping": counted("bigfleet_coordinator_raft_term", "1+1", "5+0", {"pod": "c-0"}),
    "ApplyErrors": Case(
        {f'{APPLIED}{{outcome="{o}"}}': f"0+{n}x60" for o, n in (("success", 99), ("error", 1))},
        {f'{APPLIED}{{outcome="{o}"}}': f"0+{n}x60" for o, n in (("success", 99), ("error", 0))},
    ),
    "StoreSlow": timed("bigfleet_coordinator_store_duration_seconds", 0.5, {"op": "txn"}),
    "SnapshotFailing": _aged(
        "bigfleet_coordinator_snapshot_last_success_timestamp_seconds", 45, {"pod": "c-0"}
    ),
    "InstructionsStuck": level("bigfleet_coordinator_pending_instructions", 1, 0, {"shard": "s-1"}),
    "ShardReportStale": level(
        "bigfleet_coordinator_shard_report_age_seconds", 61, 10, {"shard": "s-1"}
    ),
    "OperatorDisconnected": level("bigfleet_operator_session_connected", 0, 1, {"cluster": "c-1"}),
    "SessionFlapping": counted(
        "bigfleet_operator_session_reconnects_total", "0+1", "7+0", {"cluster": "c-1"}
    ),
    "OutboxDrops": counted(
        "bigfleet_operator_outbox_dropped_total", "0+1", "7+0", {"cluster": "c-1"}
    ),
    "RollupSlow": timed("bigfleet_operator_rollup_duration_seconds", 1),
    "AckSlow": timed("bigfleet_operator_acknowledge_duration_seconds", 12),
    "PodControllerErrors": counted(
        "bigfleet_unschedulable_pod_controller_reconciles_total", "0+12", "0+3",
        {"outcome": "error"},
    ),
    "SpendJump": Case(
        {SPEND: "100x290 160x30"}, {SPEND: "100x290 140x30"}, {}, 1580, 5,
    ),
}  # fmt: skip


def promtool_document(rule: Mapping[str, Any], case: Case, rule_file: str) -> dict[str, Any]:
    """Both cases of one alert as `promtool test rules` reads them."""
    fired = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": rule["annotations"],
    }
    both: tuple[tuple[Series, list[Any]], ...] = ((case.fires, [fired]), (case.quiet, []))
    tests = [
        {
            "interval": f"{case.step}m",
            "input_series": [{"series": name, "values": values} for name, values in given.items()],
            "alert_rule_test": [
                {"eval_time": f"{case.at}m", "alertname": rule["alert"], "exp_alerts": expected}
            ],
        }
        for given, expected in both
    ]
    return {"rule_files": [rule_file], "evaluation_interval": "1m", "tests": tests}
