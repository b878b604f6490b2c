"""Writes docs/guides/runbook.md from the alert rules of the chart: one entry per alert.

What to do is the rule's own line; where to look is told here, by the part an alert speaks of.
`--check` only says whether the page is what the rules say.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
RULES = ROOT / "deploy" / "helm" / "bigfleet" / "files" / "alerts.yaml"
PAGE = ROOT / "docs" / "guides" / "runbook.md"
HEAD = """# Runbook

One entry per alert of the chart (`alerts.enabled`). This page is written from the rules
(`make boards`); change it there. `page` wakes someone, `warn` makes a ticket.

Three places to look first, whatever the alert: the [dashboard](dashboard.md)'s Overview,
`bigfleetctl status`, and `bigfleet doctor --coordinator host:7790`. While you look: with all of
BigFleet down every cluster keeps running, with the coordinator down every shard keeps deciding,
with an operator away its cluster keeps its machines. What stops is change.
"""
PROVIDERS = (
    *("Provider", "Prices", "Stockout", "OrphanHosts", "TransitionStuck", "FailedGrowing"),
    *("MassLoss", "Reconcile"),
)
ABOVE = ("Coordinator", "Leader", "Store", "Snapshot", "Instructions", "Apply", "ShardReport")
BELOW = ("Operator", "Session", "Outbox", "Ack", "PhantomNodes", "PodController", "RollupSlow")
WHERE: Sequence[tuple[tuple[str, ...], str]] = (
    (PROVIDERS, "dashboard: Providers, Machines (state Failed); the provider's log and `inspect`"),
    (ABOVE, "dashboard: Topology; `bigfleetctl list-instructions`, `bigfleetctl list-moves`"),
    (
        ("Shortfall", "Preemption", "BootstrapFailing"),
        "dashboard: Needs (unmet), whose drawer says why and what would help; "
        "`bigfleetctl inspect-needs --unmet`",
    ),
    (BELOW, "dashboard: Clusters; the operator's log in that cluster"),
    (("Rollup",), "dashboard: Clusters, the cluster's page; the shard's log, `grep rollup`"),
    (("Pinned", "Idle", "Spend"), "dashboard: Cost, red flags; What-if for prices or demand"),
    (("Certificate", "Identity", "Fenced"), "`bigfleet doctor` with the files; the shard's log"),
    (
        ("",),
        "dashboard: Shards, the shard's page; `/debug/cycles` and `/debug/stacks` on its HTTP port",
    ),
)


def where(alert: str) -> str:
    """Where to look."""
    name = alert.removeprefix("BigFleet")
    return next(place for words, place in WHERE if any(word in name for word in words))


def entry(rule: Mapping[str, Any]) -> str:
    """One alert."""
    about = rule["annotations"]
    return f"""
## {rule["alert"]}

{about["summary"]}. Severity `{rule["labels"]["severity"]}`, after {rule.get("for", "0m")}.

    {" ".join(str(rule["expr"]).split())}

- **Do:** {about["runbook"]}
- **Look:** {where(rule["alert"])}.
"""


def page() -> str:
    """The whole page."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))
    return HEAD + "".join(entry(rule) for group in groups for rule in group["rules"])


def main(words: list[str]) -> int:
    """Write, or check."""
    made = page()
    if words == ["--check"]:
        fresh = PAGE.is_file() and PAGE.read_text("utf-8") == made
        print("the runbook is what the rules say" if fresh else "run `make boards`: rules changed")
        return 0 if fresh else 1
    PAGE.write_text(made, "utf-8")
    print(f"wrote {PAGE.name}: {made.count(chr(10) + '## ')} alerts")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
