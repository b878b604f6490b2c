"""What came of a run, for people and for programs, and a line on how it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bigfleet.wire.tls_diagnosis import shortly
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from bigfleet_lab.simcluster.fleet import SimFleet

COUNTS: Final = (
    "sessions_opened", "rollups_sent", "rows_sent", "rollups_acknowledged", "rollups_held",
    "rollups_rejected", "bootstraps_asked", "bootstraps_answered", "bootstraps_refused",
    "reclaims", "reclaim_cancels", "node_updates", "capacity_hints", "verdicts", "observations",
    "answers_dropped",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of a run."""

    clusters: int
    connected: int
    seconds: float
    cpu_seconds: float
    counts: dict[str, int]
    ended: dict[str, int]
    latency_ms: dict[str, float | None]
    pods: dict[str, int]
    nodes: dict[str, int]
    unmet_rows: int
    """Rows the shard says it cannot meet at the moment."""
    unmet_reasons: dict[str, int]
    trouble: str
    """The last thing that went wrong, in the shard's words; empty for nothing."""

    @property
    def ok(self) -> bool:
        """Whether every cluster was connected at the end and none of its roll-ups refused."""
        return self.connected == self.clusters and not self.counts["rollups_rejected"]

    def document(self) -> dict[str, object]:
        """For programs."""
        return {
            "clusters": self.clusters,
            "connected": self.connected,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            **self.counts,
            "sessions_ended": self.ended,
            "rollup_to_ack_ms": self.latency_ms,
            "pods": self.pods,
            "nodes": self.nodes,
            "unmet_rows": self.unmet_rows,
            "unmet_reasons": self.unmet_reasons,
            "trouble": self.trouble,
        }

    def lines(self) -> list[tuple[str, str]]:
        """For people: what, and how much."""
        quantiles = ", ".join(
            f"{name} {'-' if ms is None else f'{ms:.1f} ms'}"
            for name, ms in self.latency_ms.items()
        )
        c = self.counts
        lines = [
            ("clusters connected", f"{self.connected:,} of {self.clusters:,}"),
            ("roll-ups", f"{c['rollups_sent']:,} sent, {c['rollups_acknowledged']:,} acknowledged"),
            ("  held, refused", f"{c['rollups_held']:,}, {c['rollups_rejected']:,}"),
            ("  roll-up to acknowledgement", quantiles),
            ("bootstraps", f"{c['bootstraps_asked']:,} asked, {c['bootstraps_answered']:,} given"),
            ("reclaims", f"{c['reclaims']:,}, {c['reclaim_cancels']:,} called off"),
            ("nodes", f"{self.nodes['ready']:,} Ready of {self.nodes['all']:,}"),
            ("pods", f"{self.pods['running']:,} running, {self.pods['waiting']:,} waiting"),
            ("rows unmet", _reasons(self.unmet_rows, self.unmet_reasons)),
            ("time", f"{self.seconds:.1f} s, of the processor {self.cpu_seconds:.1f} s"),
        ]
        if self.trouble:
            lines.append(("last trouble", self.trouble))
        return lines


def progress(fleet: SimFleet) -> str:
    """One line on how it goes."""
    stats = fleet.stats
    p95 = stats.latency(0.95)
    waiting = sum(operator.cluster.placing.waiting_pods() for operator in fleet)
    trouble = _trouble(fleet) if fleet.connected < len(fleet) else ""
    return (
        f"{fleet.connected:,}/{len(fleet):,} connected, {stats.rollups_acknowledged:,} roll-ups "
        f"acknowledged (p95 {'-' if p95 is None else f'{p95 * 1000:.0f} ms'}), "
        f"{stats.bootstraps_answered:,} bootstraps, {stats.reclaims:,} reclaims, "
        f"{waiting:,} pods waiting" + (f"; {trouble}" if trouble else "")
    )


def summarise(fleet: SimFleet, seconds: float, cpu_seconds: float) -> Summary:
    """The fleet as it is now, and what happened to it."""
    stats, clusters = fleet.stats, [operator.cluster for operator in fleet]
    unmet = [
        verdict
        for cluster in clusters
        for verdict in cluster.verdicts.values()
        if not verdict.satisfied
    ]
    reasons: dict[str, int] = {}
    for verdict in unmet:
        name = _reason(verdict.reason)
        reasons[name] = reasons.get(name, 0) + 1
    latencies = {f"p{round(share * 100)}": stats.latency(share) for share in (0.5, 0.95, 0.99)}
    return Summary(
        clusters=len(fleet),
        connected=fleet.connected,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        counts={name: getattr(stats, name) for name in COUNTS},
        ended=dict(sorted(stats.sessions_ended.items())),
        latency_ms={
            name: None if value is None else round(value * 1000, 3)
            for name, value in latencies.items()
        },
        pods={
            "running": sum(cluster.placing.running_pods() for cluster in clusters),
            "waiting": sum(cluster.placing.waiting_pods() for cluster in clusters),
        },
        nodes={
            "ready": sum(node.ready for cluster in clusters for node in cluster.nodes),
            "all": sum(len(cluster.nodes) for cluster in clusters),
        },
        unmet_rows=len(unmet),
        unmet_reasons=dict(sorted(reasons.items())),
        trouble=_trouble(fleet),
    )


def _trouble(fleet: SimFleet) -> str:
    if fleet.stats.rejection:
        return f"roll-up refused: {fleet.stats.rejection}"
    ends = (one.last_end for one in fleet if one.last_end and not one.connected)
    return shortly(*next(ends, "").partition(": ")[::2])


def _reason(number: int) -> str:
    try:
        return read.UnmetReason.Name(read.UnmetReason.ValueType(number)).removeprefix(
            "UNMET_REASON_"
        )
    except ValueError:
        return f"reason {number}"


def _reasons(rows: int, reasons: dict[str, int]) -> str:
    words = ", ".join(f"{count:,} {name}" for name, count in reasons.items())
    return f"{rows:,} ({words})" if words else f"{rows:,}"
