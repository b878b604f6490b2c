"""The board `bigfleet-fleet`: what to look at first, and then part by part.

`pod` chooses shards, `cluster` operators. A quantile is over five minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from boards.panels import AMBER, RED, Board, Panel, Query, Row, Variable

S: Final = 'pod=~"$pod"'
C: Final = 'cluster=~"$cluster"'


def quantile(share: float, family: str, by: str = "", where: str = "") -> str:
    """A quantile of a histogram over five minutes."""
    labels = f"le, {by}" if by else "le"
    inside = f"{{{where}}}" if where else ""
    return f"histogram_quantile({share}, sum by ({labels}) (rate({family}_bucket{inside}[5m])))"


def quantiles(family: str, by: str = "", where: str = "", legend: str = "") -> list[Query]:
    """p50 and p99, told apart."""
    name = f"{{{{{by}}}}} " if by else legend
    return [Query(quantile(q, family, by, where), f"{name}p{q * 100:g}") for q in (0.5, 0.99)]


def rates(family: str, by: str, where: str = "") -> list[Query]:
    """Events per second by a label."""
    inside = f"{{{where}}}" if where else ""
    return [Query(f"sum by ({by}) (rate({family}{inside}[5m]))", f"{{{{{by}}}}}")]


def per_cycle(kind: str, where: str) -> str:
    """How many changes of a kind a cycle had to look at."""
    changes = f'rate(bigfleet_shard_cycle_changes_total{{kind="{kind}",{where}}}[5m])'
    return f"sum({changes}) / sum(rate(bigfleet_shard_cycles_total{{{where}}}[5m]))"


def sums(family: str, by: str, where: str = "") -> list[Query]:
    """A gauge by a label."""
    inside = f"{{{where}}}" if where else ""
    return [Query(f"sum by ({by}) ({family}{inside})", f"{{{{{by}}}}}")]


def stat(
    title: str, *exprs: str, unit: str = "short", steps: dict[float, str] | None = None,
    width: int = 4, legend: str = "__auto",
) -> Panel:  # fmt: skip
    """One number, or a few."""
    queries = [Query(expr, legend, instant=True) for expr in exprs]
    return Panel(title, "stat", queries, unit, width, 4, steps or {})


def lines(
    title: str, queries: Sequence[Query], unit: str = "short", *, stacked: bool = False,
    bars: bool = False, width: int = 8, steps: dict[float, str] | None = None,
) -> Panel:  # fmt: skip
    """Over time."""
    return Panel(title, "timeseries", queries, unit, width, 8, steps or {}, stacked, bars)


def heat(title: str, family: str, where: str) -> Panel:
    """Where the durations lie, over time."""
    query = f"sum by (le) (rate({family}_bucket{{{where}}}[5m]))"
    return Panel(title, "heatmap", [Query(query, "{{le}}", format="heatmap")], "s")


NONE_IS_GOOD: Final = {0.5: RED}
CYCLE: Final = "bigfleet_shard_cycle_duration_seconds"
PHASE: Final = "bigfleet_shard_cycle_phase_duration_seconds"
INVENTORY: Final = "bigfleet_shard_inventory_machines"
ROLLUP: Final = "bigfleet_operator_rollup_duration_seconds"
CHANGES: Final = ("need_added", "need_changed", "need_removed", "machine_changed")
SPEND: Final = "bigfleet_shard_spend_dollars_per_hour"
SERVING: Final = f'{INVENTORY}{{state="Configured"}}'
PENALTY: Final = "interruption_penalty_bucket"
ENDED: Final = "bigfleet_shard_action_execute_outcomes_total"
CALLS: Final = "bigfleet_shard_provider_rpc_total"
MOVES: Final = "bigfleet_coordinator_rebalance_moves_total"
EXPIRY: Final = "bigfleet_tls_certificate_expiry_timestamp_seconds"
RECONCILED: Final = "bigfleet_provider_reconcile_last_success_timestamp_seconds"
PRICED: Final = "bigfleet_provider_price_last_success_timestamp_seconds"

OVERVIEW = Row(
    "Overview",
    (
        stat("Shards up", 'sum(up{job="bigfleet-shard"})'),
        stat("Clusters connected", "sum(bigfleet_shard_active_sessions)"),
        stat("Shortfalls", "sum(bigfleet_shard_shortfalls)", steps=NONE_IS_GOOD),
        stat(
            "Worst cycle p99",
            f"max({quantile(0.99, CYCLE, 'pod')})",
            unit="s",
            steps={1: AMBER, 5: RED},
        ),
        stat("Spend per hour", f"sum({SPEND})", unit="currencyUSD", width=8),
        stat("Machines by state", f"sum by (state) ({INVENTORY})", width=16, legend="{{state}}"),
        Panel("Firing alerts", "alertlist", (), width=8, height=4),
    ),
)
COORDINATOR = Row(
    "Coordinator",
    (
        stat("Term", "max(bigfleet_coordinator_raft_term)"),
        stat("Leaders", "sum(bigfleet_coordinator_is_leader)", steps={0: RED, 1: "green", 2: RED}),
        lines(
            "State writes by outcome", rates("bigfleet_coordinator_apply_total", "outcome"), "ops"
        ),
        lines(
            "Instructions waiting per shard",
            sums("bigfleet_coordinator_pending_instructions", "shard"),
        ),
        lines(
            "Store latency by op",
            quantiles("bigfleet_coordinator_store_duration_seconds", "op"),
            "s",
        ),
        lines(
            "Moves between shards",
            [Query(f"sum by (tier, outcome) (increase({MOVES}[1h]))", "{{tier}} {{outcome}}")],
            bars=True,
        ),
        lines(
            "Age of shards' reports",
            [Query("max by (shard) (bigfleet_coordinator_shard_report_age_seconds)", "{{shard}}")],
            "s",
        ),
    ),
)
SHARD = Row(
    "Shard",
    (
        heat("Cycle duration", CYCLE, S),
        lines(
            "Cycle quantiles",
            [Query(quantile(q, CYCLE, "", S), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)],
            "s",
        ),
        lines("Phase p99", [Query(quantile(0.99, PHASE, "phase", S), "{{phase}}")], "s"),
        lines("Changes per cycle", [Query(per_cycle(kind, S), kind) for kind in CHANGES]),
        lines("Actions by kind", rates("bigfleet_shard_actions_total", "kind", S), "ops"),
        lines("Inventory by state", sums(INVENTORY, "state", S), stacked=True),
        lines(
            "Roll-up age",
            [Query(f"max by (stat) (bigfleet_shard_rollup_age_seconds{{{S}}})", "{{stat}}")],
            "s",
            width=24,
        ),
    ),
)
DEMAND = Row(
    "Demand",
    (
        stat("Shortfalls", f"sum(bigfleet_shard_shortfalls{{{S}}})", steps=NONE_IS_GOOD, width=24),
        lines(
            "Shortfalls by priority",
            sums("bigfleet_shard_shortfalls_by_priority", "priority_class", S),
            stacked=True,
        ),
        lines(
            "Shortfalls by age in cycles",
            sums("bigfleet_shard_shortfalls_aged", "bucket", S),
            stacked=True,
        ),
        lines(
            "Demand rows by penalty",
            sums("bigfleet_shard_demand_machines", PENALTY, S),
            bars=True,
        ),
        lines(
            "Provisioning latency",
            quantiles("bigfleet_shard_provisioning_latency_seconds", "", S),
            "s",
            width=24,
        ),
    ),
)
SAFETY = Row(
    "Safety",
    (
        stat(
            "Unforced reclaims, 1 h",
            "sum(increase(bigfleet_shard_reclaims_unforced_total[1h]))",
            steps=NONE_IS_GOOD,
        ),
        stat("Phantom machines", "sum(bigfleet_shard_phantom_machines)", steps=NONE_IS_GOOD),
        stat("Phantom nodes", "sum(bigfleet_operator_phantom_nodes)", steps=NONE_IS_GOOD),
        stat("Fenced, 1 h", f'sum(increase({ENDED}{{outcome="fenced"}}[1h]))', steps=NONE_IS_GOOD),
        stat(
            "Identities refused, 1 h",
            "sum(increase(bigfleet_shard_session_identity_rejected_total[1h]))",
            steps=NONE_IS_GOOD,
        ),
        stat(
            "Mass losses held",
            "sum by (provider) (bigfleet_shard_provider_removals_held)",
            steps=NONE_IS_GOOD,
            legend="{{provider}}",
        ),
        stat("Paused", "sum(bigfleet_shard_actuation_paused)", steps={0.5: AMBER}),
        stat(
            "Days to a certificate's end",
            f"(min({EXPIRY}) - time()) / 86400",
            steps={0: RED, 7: "green"},
        ),
        lines(
            "Reclaims held back",
            [Query("sum(rate(bigfleet_shard_reclaims_capped_total[5m]))", "capped")],
            width=8,
        ),
        Panel(
            "Quarantined clusters",
            "table",
            [Query("bigfleet_shard_rollup_quarantined > 0", "", instant=True, format="table")],
            width=8,
        ),
        lines(
            "Actions suppressed or dropped",
            [
                *rates("bigfleet_shard_actions_suppressed_total", "kind"),
                *rates("bigfleet_shard_actions_dryrun_total", "kind"),
            ],
            width=8,
        ),
    ),
)
OPERATOR = Row(
    "Operator",
    (
        heat("Roll-up duration", ROLLUP, C),
        lines(
            "Roll-up quantiles",
            [Query(quantile(q, ROLLUP, "", C), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)],
            "s",
        ),
        lines(
            "Acknowledgements",
            [Query(f"sum(rate(bigfleet_operator_acknowledged_total{{{C}}}[5m]))", "per second")],
            "ops",
        ),
        stat(
            "Reconnects, 1 h",
            f"sum(increase(bigfleet_operator_session_reconnects_total{{{C}}}[1h]))",
            steps={3: AMBER},
        ),
        stat(
            "Outbox drops, 1 h",
            f"sum(increase(bigfleet_operator_outbox_dropped_total{{{C}}}[1h]))",
            steps=NONE_IS_GOOD,
        ),
        lines(
            "Node state p99 by phase",
            [
                Query(
                    quantile(
                        0.99, "bigfleet_operator_node_state_update_duration_seconds", "phase", C
                    ),
                    "{{phase}}",
                )
            ],
            "s",
        ),
        lines(
            "Evictions by outcome", rates("bigfleet_operator_evictions_total", "outcome", C), "ops"
        ),
    ),
)
RPC: Final = "bigfleet_shard_provider_rpc_duration_seconds"
PROVIDER = Row(
    "Provider",
    (
        lines("RPC by method", quantiles(RPC, "method"), "s"),
        lines(
            "Errors by code",
            [Query(f'sum by (code) (rate({CALLS}{{code!="OK"}}[5m]))', "{{code}}")],
            "ops",
        ),
        lines("Machines by state", sums("bigfleet_provider_machines", "state"), stacked=True),
        lines(
            "Transitions by kind and outcome",
            [
                Query(
                    "sum by (kind, outcome) (rate(bigfleet_provider_transitions_total[5m]))",
                    "{{kind}} {{outcome}}",
                )
            ],
            "ops",
        ),
        lines(
            "Oldest transition against its time-out",
            [
                Query("max by (kind) (bigfleet_provider_transition_age_max_seconds)", "{{kind}}"),
                Query(
                    "min by (kind) (bigfleet_provider_transition_timeout_seconds)",
                    "{{kind}} time-out",
                ),
            ],
            "s",
        ),
        lines(
            "Failed machines and healings that failed",
            [
                Query('sum(bigfleet_provider_machines{state="Failed"})', "failed"),
                Query(
                    "sum(increase(bigfleet_provider_heal_failures_total[1h]))",
                    "healings failed, 1 h",
                ),
            ],
        ),
        lines(
            "Age of reconcile and of prices",
            [
                Query(f"max(time() - {RECONCILED})", "reconcile"),
                Query(f"max(time() - {PRICED})", "prices"),
            ],
            "s",
        ),
        lines(
            "Substrate calls by outcome",
            rates("bigfleet_provider_api_calls_total", "outcome"),
            "ops",
        ),
        lines(
            "Substrate latency p99 by op",
            [Query(quantile(0.99, "bigfleet_provider_api_duration_seconds", "op"), "{{op}}")],
            "s",
        ),
        lines(
            "Throttles by op", rates("bigfleet_provider_api_throttles_total", "op"), "ops", width=24
        ),
    ),
)
COST = Row(
    "Cost",
    (
        lines("Spend by capacity type", sums(SPEND, "capacity_type"), "currencyUSD", stacked=True),
        lines("Spend by state", sums(SPEND, "state"), "currencyUSD", stacked=True),
        Panel(
            "Capacity mix",
            "piechart",
            [
                Query(
                    f'sum by (capacity_type) ({INVENTORY}{{state=~"Configured|Idle"}})',
                    "{{capacity_type}}",
                    instant=True,
                )
            ],
        ),
        Panel(
            "Capacity type and penalty",
            "table",
            [
                Query(
                    f"sum by (capacity_type, {PENALTY}) ({SERVING}) > 0",
                    "",
                    instant=True,
                    format="table",
                )
            ],
            help="Spot and pinned in one row is a red flag: see BigFleetPinnedOnSpot.",
        ),
        stat(
            "Idle share of spend",
            f'sum({SPEND}{{state="Idle"}}) / sum({SPEND})',
            unit="percentunit",
            steps={0.1: AMBER, 0.3: RED},
            width=8,
        ),
        lines(
            "Releases and Creates",
            [
                Query("sum(rate(bigfleet_shard_idle_releases_total[30m]))", "released"),
                Query('sum(rate(bigfleet_shard_actions_total{kind="Provision"}[30m]))', "bought"),
            ],
        ),
    ),
)

FLEET = Board(
    "bigfleet-fleet",
    "BigFleet: fleet",
    (OVERVIEW, COORDINATOR, SHARD, DEMAND, SAFETY, OPERATOR, PROVIDER, COST),
    (
        Variable("pod", "label_values(bigfleet_shard_cycles_total, pod)"),
        Variable("cluster", "label_values(bigfleet_operator_session_connected, cluster)"),
    ),
)
