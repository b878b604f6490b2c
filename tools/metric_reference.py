"""Writes docs/reference/metrics.md from the registries of the processes: what each one exports.

Names, types, labels and meanings are read from running code, so the page cannot promise what
no process serves. What was promised is held against the same registries by tests. `--check` only
compares.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.podcontroller import PodControllerMetrics
from bigfleet.observe.shard import ShardMetrics
from bigfleet_lab.fake import FakeProvider

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "metrics.md"
RECONCILED = "bigfleet_provider_reconcile_last_success_timestamp_seconds"
PREFIXES = {
    "Shard": "bigfleet_shard_",
    "Coordinator": "bigfleet_coordinator_",
    "Operator": "bigfleet_operator_",
    "Pod controller": "bigfleet_unschedulable_pod_controller_",
    "Provider": "bigfleet_provider_",
}
HEAD = """# Metrics

<!-- Written by tools/metric_reference.py from the processes' registries; `make boards` does. -->

Every process serves these at `/metrics`, as Prometheus text and as OpenMetrics. Seconds, dollars,
bytes and counts; counters end in `_total`. A series whose labels all have closed lists of values is
there from the start with 0; one that names a cluster, a shard, a provider or a resource appears
with its first event. What to look at first is in [day 2](../guides/day-2.md), what an alert means
in the [runbook](../guides/runbook.md), queries that keep working in [promised queries](queries.md).

All of them also export `bigfleet_build_info{component,version,revision,python}`, the standard
`process_*` and `python_gc_*` series and, with TLS,
`bigfleet_tls_certificate_expiry_timestamp_seconds{role}`.
"""
COLUMNS = "| name | type | labels | meaning |\n| --- | --- | --- | --- |\n"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric as a scrape sees it."""

    name: str
    kind: str
    labels: frozenset[str]
    meaning: str


def registries() -> dict[str, CollectorRegistry]:
    """The registry of every part, as a fresh process has it."""
    return {
        "Shard": ShardMetrics(lambda: 0, version="0").registry,
        "Coordinator": CoordinatorMetrics(lambda: 0, version="0").registry,
        "Operator": OperatorMetrics(lambda: 0.0, version="0").registry,
        "Pod controller": PodControllerMetrics(version="0").registry,
        "Provider": asyncio.run(a_providers_registry()),
    }


async def a_providers_registry() -> CollectorRegistry:
    """Of a provider that runs: some of its series are made of what it has."""
    async with await FakeProvider.start(seed_count=1) as fake:
        metrics = fake.running.metrics
        # The fake has no live prices; a provider that has some tells when it last read them.
        metrics.last_success("price", 0.0)
        async with asyncio.timeout(60):
            while RECONCILED not in metrics.registry._names_to_collectors:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return metrics.registry


def families(registry: CollectorRegistry, prefix: str) -> Iterator[Family]:
    """What a registry exports under a prefix, families without a series yet included."""
    for metric in registry.collect():
        if not metric.name.startswith(prefix):
            continue
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        seen = {label for sample in metric.samples for label in sample.labels} - {"le"}
        collector = registry._names_to_collectors.get(metric.name)
        # Our histograms tell their labels, the library's instruments do not.
        known = getattr(collector, "label_names", getattr(collector, "_labelnames", ()))
        yield Family(name, metric.type, frozenset(seen | set(known)), metric.documentation)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for part, registry in registries().items():
        parts.append(
            f"\n## {part}\n\n| name | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        )
        for family in sorted(families(registry, PREFIXES[part]), key=lambda one: one.name):
            labels = ", ".join(f"`{label}`" for label in sorted(family.labels))
            meaning = family.meaning[:1].upper() + family.meaning[1:].rstrip(".")
            parts.append(f"| `{family.name}` | {family.kind} | {labels} | {meaning} |\n")
    return "".join(parts)


def main(argv: Sequence[str]) -> int:
    """Write the page, or say that it is old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    made = page()
    if not parser.parse_args(argv).check:
        PAGE.write_text(made, "utf-8")
        print(f"wrote {PAGE.name}: {made.count(chr(10) + '| `')} metrics")
        return 0
    if not PAGE.is_file() or PAGE.read_text("utf-8") != made:
        print(f"{PAGE.name} is not what processes export; run: make boards", file=sys.stderr)
        return 1
    print("the reference of metrics is what processes export")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
