"""Queries that users are promised: for whom, and what they ask.

`base` is the same question without the comparison that makes a healthy answer empty, or with a
range or grouping that a young system can fill. Alerts speak of these by their numbers. Tests
evaluate every one on a running system; `tools/query_reference.py` writes them down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Promise:
    """One query."""

    number: str
    role: str
    question: str
    expr: str
    base: str = ""

    @property
    def young(self) -> str:
        """What gives an answer on every system that runs."""
        return self.base or self.expr


SHORT: Final = "bigfleet_shard_shortfalls"
PRIORITY: Final = 'sum(bigfleet_shard_shortfalls_by_priority{priority_class!="batch"})'
CYCLE: Final = "bigfleet_shard_cycle_duration_seconds_bucket"
PHASE: Final = "bigfleet_shard_cycle_phase_duration_seconds_bucket"
INVENTORY: Final = "bigfleet_shard_inventory_machines"
DEMAND: Final = "bigfleet_shard_demand_machines"
CALLS: Final = "bigfleet_shard_provider_rpc_total"
CALL: Final = "bigfleet_shard_provider_rpc_duration_seconds_bucket"
STORE: Final = "bigfleet_coordinator_store_duration_seconds_bucket"
SPEND: Final = "bigfleet_shard_spend_dollars_per_hour"
AGAIN: Final = "bigfleet_operator_session_reconnects_total"
SERVING: Final = f'sum({INVENTORY}{{state=~"Configured|Configuring"}})'
PINNED: Final = 'capacity_type="Spot",state="Configured",interruption_penalty_bucket="pinned"'


def _p(share: float, buckets: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({buckets}[5m])))"


def _over(share: float, expr: str, span: str) -> str:
    return f"quantile_over_time({share}, {expr}[{span}])"


PROMISED: Final = (
    Promise("Q01", "ml", "Is any demand unserved?", f"{SHORT} > 0", SHORT),
    Promise("Q02", "ml", "Is any demand other than batch unserved?", f"{PRIORITY} > 0", PRIORITY),
    Promise(
        "Q03", "ml", "How often is batch preempted?",
        'sum by (kind) (rate(bigfleet_shard_actions_total{kind="Preempt"}[5m]))',
    ),
    Promise("Q04", "on-call", "How much demand other than batch is unserved?", PRIORITY),
    Promise("Q05", "platform", "How long does a cycle take?", _p(0.99, CYCLE)),
    Promise("Q06", "platform", "How long does each phase take?", _p(0.99, PHASE, "phase")),
    Promise(
        "Q07", "platform", "How often is the coordinator's state written?",
        "sum(rate(bigfleet_coordinator_apply_total[5m]))",
    ),
    Promise(
        "Q08", "platform", "Do sessions break?", f"sum(rate({AGAIN}[5m])) > 0",
        f"sum(rate({AGAIN}[5m]))",
    ),
    Promise("Q09", "finops", "How many machines, by state?", f"sum by (state) ({INVENTORY})"),
    Promise(
        "Q10", "finops", "What is the mix of capacity?",
        f'sum by (capacity_type) ({INVENTORY}{{state=~"Configured|Idle"}})',
    ),
    Promise(
        "Q11", "finops", "What runs on which capacity type?",
        f"sum by (capacity_type, interruption_penalty_bucket) "
        f'({INVENTORY}{{state="Configured"}})',
    ),
    Promise(
        "Q12", "finops", "What is the demand, by penalty?",
        f"sum by (interruption_penalty_bucket) ({DEMAND})",
    ),
    Promise(
        "Q13", "finops", "Which actions are executed?",
        "sum by (kind) (rate(bigfleet_shard_actions_total[5m]))",
    ),
    Promise(
        "Q14", "finops", "How much demand is pinned?",
        f'{DEMAND}{{interruption_penalty_bucket="pinned"}}',
    ),
    Promise("Q15", "finops", "Does pinned work sit on Spot?", f"{INVENTORY}{{{PINNED}}}"),
    Promise(
        "Q16", "planner", "What was the peak of serving machines in a quarter?",
        _over(0.99, SERVING, "90d:1h"), _over(0.99, SERVING, "2m:15s"),
    ),
    Promise(
        "Q17", "planner", "What was the peak of demand in a quarter?",
        _over(0.99, f"sum({DEMAND})", "90d:1h"), _over(0.99, f"sum({DEMAND})", "2m:15s"),
    ),
    Promise("Q18", "owner", "Does my operator lose its session?", f"rate({AGAIN}[5m])"),
    Promise(
        "Q19", "owner", "Are my requests acknowledged?",
        "sum(rate(bigfleet_operator_acknowledged_total[5m]))",
    ),
    Promise("Q20", "platform", "What is the leader's term?", "max(bigfleet_coordinator_raft_term)"),
    Promise(
        "Q21", "platform", "Are writes refused?",
        "sum by (outcome) (rate(bigfleet_coordinator_apply_total[5m]))",
    ),
    Promise(
        "Q22", "platform", "Which instructions are waiting?",
        "sum by (shard) (bigfleet_coordinator_pending_instructions)",
    ),
    Promise("Q23", "platform", "How long do 95 % of cycles take at most?", _p(0.95, CYCLE)),
    Promise(
        "Q24", "platform", "How long do provider calls take?",
        _p(0.99, CALL, "method"), _p(0.99, CALL)
    ),
    Promise(
        "Q25", "platform", "Which calls of providers fail?",
        f"sum by (method) (rate({CALLS}[5m])) - "
        f'sum by (method) (rate({CALLS}{{code="OK"}}[5m]))',
    ),
    Promise(
        "Q26", "platform", "How old is the oldest roll-up?",
        'max(bigfleet_shard_rollup_age_seconds{stat="max"})',
    ),
    Promise("Q27", "platform", "Which coordinator leads?", "sum(bigfleet_coordinator_is_leader)"),
    Promise(
        "Q28", "platform", "How long do store operations take?",
        _p(0.99, STORE, "op"), _p(0.99, STORE)
    ),
    Promise(
        "Q29", "platform", "What moved between shards?",
        "sum by (tier, outcome) (increase(bigfleet_coordinator_rebalance_moves_total[1h]))",
    ),
    Promise(
        "Q30", "on-call", "Is capacity counted that does not exist?",
        "sum(bigfleet_shard_phantom_machines)",
    ),
    Promise("Q31", "finops", "What does the fleet cost?", f"sum by (capacity_type) ({SPEND})"),
    Promise(
        "Q32", "finops", "Which share of it is idle?",
        f'sum({SPEND}{{state="Idle"}}) / sum({SPEND})',
    ),
    Promise(
        "Q33", "platform", "Was any machine reclaimed without a fall in demand?",
        "increase(bigfleet_shard_reclaims_unforced_total[1h])",
    ),
)  # fmt: skip

PHASES: Final = 9
IDENTITIES: Final = (
    ("sum(bigfleet_shard_shortfalls_by_priority)", "sum(bigfleet_shard_shortfalls)"),
    ("sum(bigfleet_shard_shortfalls_aged)", "sum(bigfleet_shard_shortfalls)"),
    ("sum(bigfleet_coordinator_is_leader)", "1"),
    ("sum by (state) (bigfleet_shard_inventory_machines)",
     "sum by (state) (bigfleet_provider_machines)"),
)  # fmt: skip
"""Pairs that are equal on a system at rest, whenever it is looked at."""
