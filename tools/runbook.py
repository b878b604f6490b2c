"""Writes the runbook from the alert rules of the chart: docs/guides/runbook.md with an entry per
alert, and below docs/guides/alerts a page for each.

What to do comes from the rule; where to look comes from this file, by the part an alert is about. A
page adds what follows from the expression: the metrics in it with their meaning, the panels that
show them, the promised queries that ask for the same. `--check` only says whether all of it is
what the rules say.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from boards.fleet import FLEET
from boards.promised_queries import PROMISED
from metric_reference import PREFIXES, families, registries

ROOT = Path(__file__).parent.parent
RULES = ROOT / "deploy" / "helm" / "bigfleet" / "files" / "alerts.yaml"
PAGE = ROOT / "docs" / "guides" / "runbook.md"
PAGES = ROOT / "docs" / "guides" / "alerts"
METRIC = re.compile(r"\b(?:bigfleet_[a-z0-9_]+|up)\b")
PARTS = re.compile(r"_(?:bucket|count|sum)$")
WORDS = {
    "up": "1 where the last scrape was answered, 0 where not; Prometheus' own",
    "bigfleet_tls_certificate_expiry_timestamp_seconds": "When the certificate in use ends",
}
MEANT = {
    "page": "Severity: page. The condition harms users or gets worse without action.",
    "warn": "Severity: warning. Open a ticket and look at it in working hours.",
}
HEAD = """# Runbook

One entry per alert of the chart (`alerts.enabled`). This page is written from the rules
(`make boards`); change the rules, not this page. `page` calls the person on call, `warn` opens a
ticket.

Look at three places first: the [dashboard](dashboard.md)'s Overview, `bigfleetctl status`, and
`bigfleet doctor --coordinator host:7790`. Nothing that runs depends on BigFleet: with all of it
down every cluster keeps running, with the coordinator down every shard keeps deciding, with an
operator down its cluster keeps its machines. Only changes of capacity stop.
"""
PROVIDERS = (
    *("Provider", "Prices", "Stockout", "OrphanHosts", "TransitionStuck", "FailedGrowing"),
    *("MassLoss", "Reconcile"),
)
ABOVE = ("Coordinator", "Leader", "Store", "Snapshot", "Instructions", "Apply", "ShardReport")
BELOW = ("Operator", "Session", "Outbox", "Ack", "PhantomNodes", "PodController", "RollupSlow")
WHERE: Sequence[tuple[tuple[str, ...], str]] = (
    (PROVIDERS, "dashboard: Providers, Machines (state Failed); the provider's log and `inspect`"),
    (ABOVE, "dashboard: Topology; `bigfleetctl list-instructions`, `bigfleetctl moves`"),
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

- **What to do:** {about["runbook"]}
- **Where to look:** {where(rule["alert"])}.
- **More:** [its page](alerts/{rule["alert"]}.md), with metrics, panels and queries.
"""


def metrics_of(expression: str) -> set[str]:
    """The metrics an expression asks for."""
    bare = re.sub(r"\{[^}]*\}", "", expression)
    return {PARTS.sub("", name) for name in METRIC.findall(bare)}


@lru_cache
def meanings() -> Mapping[str, str]:
    """What every metric means, by its name."""
    found = {
        family.name: family.meaning.rstrip(".")
        for part, registry in registries().items()
        for family in families(registry, PREFIXES[part])
    }
    return {**found, **WORDS}


def panels(metrics: set[str]) -> list[str]:
    """Where the board shows one of them."""
    return [
        f"{row.title}, *{panel.title}*"
        for row in FLEET.rows
        for panel in row.panels
        if any(metrics & metrics_of(query.expr) for query in panel.queries)
    ]


def _after(rule: Mapping[str, Any]) -> str:
    held = rule.get("for", "0m")
    return "at once" if held == "0m" else f"when the condition has held for {held}"


def own_page(rule: Mapping[str, Any]) -> str:
    """The page of one alert."""
    expression, about = " ".join(str(rule["expr"]).split()), rule["annotations"]
    metrics = metrics_of(expression)
    promised = [
        one for one in PROMISED if one.number in about["runbook"] or metrics & metrics_of(one.expr)
    ]
    severity = rule["labels"]["severity"]
    parts = [
        f"# {rule['alert']}\n\n",
        "<!-- Written by tools/runbook.py from the alert rules; `make boards` does. -->\n\n",
        f"{about['summary']}. {MEANT[severity]} It fires {_after(rule)}.\n\n    {expression}\n\n",
        f"## What to do\n\n{about['runbook']}\n\n",
        f"## Where to look\n\n- {where(rule['alert'])}\n",
        *(f"- board `bigfleet-fleet`: {panel}\n" for panel in panels(metrics)),
        "\n## Metrics\n\n| metric | meaning |\n| --- | --- |\n",
        *(f"| `{name}` | {meanings()[name]} |\n" for name in sorted(metrics)),
    ]
    if promised:
        parts.append("\n## Related queries\n\n| number | question | query |\n")
        parts.append("| --- | --- | --- |\n")
        parts += [
            f"| {one.number} | {one.question} | `{one.expr.replace('|', chr(92) + '|')}` |\n"
            for one in promised
        ]
    parts.append("\nAll alerts: [runbook](../runbook.md). ")
    parts.append("All queries: [promised queries](../../reference/queries.md).\n")
    return "".join(parts)


def rules() -> list[Mapping[str, Any]]:
    """Every alert rule."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))
    return [rule for group in groups for rule in group["rules"]]


def written() -> dict[Path, str]:
    """Every file with the text it should have."""
    return {PAGE: page(), **{PAGES / f"{one['alert']}.md": own_page(one) for one in rules()}}


def page() -> str:
    """The page of all alerts."""
    return HEAD + "".join(entry(rule) for rule in rules())


def stale(files: Mapping[Path, str]) -> list[str]:
    """Files that are not what the rules say, and pages of alerts that are no more."""
    old = [
        path.name
        for path, text in files.items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    return old + [path.name for path in PAGES.glob("*.md") if path not in files]


def main(words: list[str]) -> int:
    """Write, or check."""
    files = written()
    if words == ["--check"]:
        old = stale(files)
        print(f"run `make boards`: {', '.join(old)}" if old else "the runbook is what rules say")
        return 1 if old else 0
    PAGES.mkdir(exist_ok=True)
    for path in PAGES.glob("*.md"):
        path.unlink()
    for path, text in files.items():
        path.write_text(text, "utf-8")
    print(f"wrote {PAGE.name} and {len(files) - 1} pages of alerts")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
