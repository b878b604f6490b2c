"""What a process says on its HTTP pages: the last cycles, and the metrics the screens show.

Only wanted families are read of a scrape, and of histograms only sums and counts: two hundred
shards are read every few seconds.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

KEPT: Final = 600
WANTED: Final = frozenset(
    {
        "bigfleet_shard_rollup_age_seconds",
        "bigfleet_shard_clusters_stale",
        "bigfleet_shard_stockouts_cooling",
        "bigfleet_shard_create_failures_total",
        "bigfleet_shard_action_queue_depth",
        "bigfleet_shard_execute_inflight",
        "bigfleet_shard_actions_total",
        "bigfleet_shard_actuation_paused",
        "bigfleet_shard_reclaims_capped_total",
        "bigfleet_shard_reclaims_unforced_total",
        "bigfleet_shard_phantom_machines",
        "bigfleet_shard_provider_rpc_total",
        "bigfleet_shard_provider_rpc_duration_seconds_sum",
        "bigfleet_shard_provider_rpc_duration_seconds_count",
        "bigfleet_shard_provider_reconcile_age_seconds",
        "bigfleet_shard_provider_removals_held",
        "bigfleet_shard_coordinator_term",
        "bigfleet_shard_coordinator_report_age_seconds",
        "bigfleet_shard_machines_lost_total",
    }
)
_LINE: Final = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """The wanted series of one process."""

    samples: tuple[Sample, ...] = ()
    at_seconds: float = 0.0
    """When it was read."""

    def age(self, name: str, now: float, **labels: str) -> float | None:
        """The same as `one` for what grows by itself: it has grown since it was read."""
        value = self.one(name, **labels)
        return None if value is None else value + max(0.0, now - self.at_seconds)

    def one(self, name: str, **labels: str) -> float | None:
        """The value of the first series with this name and these labels."""
        return next((s.value for s in self.every(name, **labels)), None)

    def total(self, name: str, **labels: str) -> float:
        """The sum over all series with this name and these labels."""
        return sum(s.value for s in self.every(name, **labels))

    def every(self, name: str, **labels: str) -> Iterable[Sample]:
        """The series with this name and these labels."""
        full = f"bigfleet_shard_{name}"
        for sample in self.samples:
            if sample.name == full and all(sample.labels.get(k) == v for k, v in labels.items()):
                yield sample


def read_scrape(text: str, at_seconds: float = 0.0, wanted: frozenset[str] = WANTED) -> Scrape:
    """The wanted series of a page in Prometheus' text format; an unreadable line is skipped."""
    samples = []
    for line in text.splitlines():
        if line.startswith("#") or line.partition("{")[0].partition(" ")[0] not in wanted:
            continue
        found = _LINE.match(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        labels = {key: _unescaped(text) for key, text in _LABEL.findall(found[2] or "")}
        samples.append(Sample(found[1], labels, value))
    return Scrape(tuple(samples), at_seconds)


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


@dataclass(frozen=True, slots=True)
class Cycle:
    """One finished cycle of a shard; milliseconds."""

    cycle: int
    at_seconds: float
    wall_ms: float
    phases: Mapping[str, float]
    needs: int
    machines: int
    changes: int
    actions: Mapping[str, int]
    shortfalls: int
    trigger: str

    def document(self) -> dict[str, object]:
        """As the API shows it."""
        return {
            "cycle": self.cycle,
            "unix_seconds": self.at_seconds,
            "wall_ms": round(self.wall_ms, 3),
            "phases_ms": {name: round(ms, 3) for name, ms in self.phases.items()},
            "needs": self.needs,
            "machines": self.machines,
            "changes": self.changes,
            "actions": dict(self.actions),
            "shortfalls": self.shortfalls,
            "trigger": self.trigger,
        }


@dataclass(slots=True)
class Cycles:
    """The last cycles of one shard."""

    _kept: deque[Cycle] = field(default_factory=lambda: deque(maxlen=KEPT))

    @property
    def last(self) -> Cycle | None:
        """The newest."""
        return self._kept[-1] if self._kept else None

    def take(self, text: str) -> None:
        """Lines of /debug/cycles; a restarted shard counts from the beginning."""
        for line in text.splitlines():
            try:
                record = json.loads(line)
                cycle = Cycle(
                    int(record["cycle"]),
                    record["start_unix_nanos"] / 1e9,
                    record["wall_ns"] / 1e6,
                    {str(k): v / 1e6 for k, v in record["phases"].items()},
                    int(record["needs"]),
                    int(record["machines"]),
                    int(record["changes"]),
                    {str(k): int(v) for k, v in record["actions"].items()},
                    int(record["shortfalls"]),
                    str(record["trigger"]),
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if self._kept and cycle.at_seconds <= self._kept[-1].at_seconds:
                continue
            self._kept.append(cycle)

    def since(self, seconds: float) -> list[Cycle]:
        """Cycles that began after a time."""
        return [cycle for cycle in self._kept if cycle.at_seconds > seconds]

    def newest(self, count: int) -> list[Cycle]:
        """The newest, oldest first."""
        return list(self._kept)[-count:]


def quantile(values: list[float], share: float) -> float | None:
    """The value below which this share lies; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
