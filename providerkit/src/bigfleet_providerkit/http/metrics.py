"""Every series a provider exports, and the words other parts use to count.

One registry per running provider, so that several can live in one process. Counters with closed
labels exist from the start with 0. Inventory and ages are computed during a scrape.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from bigfleet_providerkit.capacity.node_reports import CORRECTED
from bigfleet_providerkit.machines.state import CapacityType, Kind, State

# Creation times would be a second series beside every counter and histogram.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

PREFIX = "bigfleet_provider"
METHODS = ("Create", "Configure", "Drain", "Delete", "Get", "List")
OUTCOMES = ("success", "failed", "timeout", "interrupted", "discarded")
CALL_OUTCOMES = ("success", "error", "throttled", "out_of_capacity", "quota", "auth")
STORE_OPS = ("load", "append", "compact")


def _bounds(start: float, per_decade: int, count: int, more: Iterable[float]) -> list[float]:
    row = {round(start * 10 ** (i / per_decade), 6) for i in range(count)}
    return sorted(row | set(more))


MEDIUM = _bounds(0.001, 8, 47, (600, 0.05, 0.25, 0.5, 1.5, 2, 5, 12, 15, 30))
LONG = _bounds(0.1, 6, 28, (3600, 7200, 15, 30, 60, 600))


class Metrics:
    """Counts; also the observer of store, calls and transitions."""

    def __init__(self, ops: Iterable[str] = ()) -> None:
        self.registry = CollectorRegistry()
        self._last_success: dict[str, Gauge] = {}
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.info = self._gauge("info", "this provider", "provider", "version", "backend")
        self.build = Gauge(
            "bigfleet_build_info", "the release", ("component", "version", "revision", "python"),
            registry=self.registry,
        )  # fmt: skip
        self.rpc = self._counter("rpc_total", "RPCs answered", "method", "code")
        self.rpc_seconds = self._histogram("rpc_duration_seconds", MEDIUM, "method")
        self.fenced = self._counter("fenced_total", "mutations refused by the fence", "method")
        self.replays = self._counter("idempotent_replays_total", "repeats answered", "method")
        self.transitions = self._counter("transitions_total", "ended ones", "kind", "outcome")
        self.transition_seconds = self._histogram("transition_duration_seconds", LONG, "kind")
        self.timeouts = self._counter("transition_timeouts_total", "expired ones", "kind")
        self.limits = self._gauge("transition_timeout_seconds", "the limit in force", "kind")
        self.heal_failures = self._counter("heal_failures_total", "cleanups that failed")
        self.hosts_lost = self._counter("hosts_lost_total", "hosts found gone", "capacity_type")
        self.orphans = self._gauge("orphan_hosts", "hosts that belong to no machine")
        self.interruptions = self._counter("spot_interruptions_total", "notices received")
        self.calls = self._counter("api_calls_total", "calls of the substrate", "op", "outcome")
        self.call_seconds = self._histogram("api_duration_seconds", MEDIUM, "op")
        self.throttles = self._counter("api_throttles_total", "throttled calls", "op")
        self.retries = self._counter("api_retries_total", "repeated calls", "op")
        self.reconciles = self._counter("reconcile_total", "passes", "outcome")
        self.price_refreshes = self._counter("price_refresh_total", "price lists", "outcome")
        self.store_seconds = self._histogram("store_duration_seconds", MEDIUM, "op")
        self.store_errors = self._counter("store_errors_total", "failures of the store", "op")
        self.differences = self._gauge(
            "allocatable_difference_ratio",
            "share by which the reserve promises more than Nodes report, of the worst type",
            "resource",
        )
        self.panics = self._counter("panics_total", "bugs met in a handler")
        self._start_at_zero(ops)

    def _start_at_zero(self, ops: Iterable[str]) -> None:
        for method in METHODS:
            self.rpc.labels(method, "OK")
            self.rpc_seconds.labels(method)
        for kind in Kind:
            self.fenced.labels(kind.method)
            self.replays.labels(kind.method)
            self.transition_seconds.labels(kind.word)
            self.timeouts.labels(kind.word)
            for outcome in OUTCOMES:
                self.transitions.labels(kind.word, outcome)
        for capacity_type in CapacityType:
            self.hosts_lost.labels(capacity_type.word)
        for op in ops:
            for outcome in CALL_OUTCOMES:
                self.calls.labels(op, outcome)
            self.call_seconds.labels(op)
            self.throttles.labels(op)
            self.retries.labels(op)
        for resource in CORRECTED:
            self.differences.labels(resource)
        for outcome in ("success", "error"):
            self.reconciles.labels(outcome)
        for outcome in ("success", "error", "stale_kept"):
            self.price_refreshes.labels(outcome)
        for op in STORE_OPS:
            self.store_seconds.labels(op)
            self.store_errors.labels(op)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, buckets: list[float], *labels: str) -> Histogram:
        text = name.replace("_", " ")
        return Histogram(f"{PREFIX}_{name}", text, labels, buckets=buckets, registry=self.registry)

    # Words of the parts that are measured.

    def stored(self, op: str, seconds: float) -> None:
        """The store did something."""
        self.store_seconds.labels(op).observe(seconds)

    def store_failed(self, op: str) -> None:
        """The store could not do something."""
        self.store_errors.labels(op).inc()

    def called(self, op: str, outcome: str, seconds: float) -> None:
        """One attempt of a call ended."""
        self.calls.labels(op, outcome).inc()
        self.call_seconds.labels(op).observe(seconds)

    def throttled(self, op: str) -> None:
        """The substrate asked to slow down."""
        self.throttles.labels(op).inc()

    def retried(self, op: str) -> None:
        """A call is made again."""
        self.retries.labels(op).inc()

    def ended(self, kind: Kind, outcome: str, seconds: float) -> None:
        """A transition ended."""
        self.transitions.labels(kind.word, outcome).inc()
        if outcome != "discarded":
            self.transition_seconds.labels(kind.word).observe(seconds)
        if outcome == "timeout":
            self.timeouts.labels(kind.word).inc()

    def page(self, accepted: str) -> tuple[bytes, str]:
        """The text of /metrics in a form that this Accept header takes, and its type."""
        encode, content_type = choose_encoder(accepted)
        return encode(self.registry), content_type

    def last_success(self, name: str, start: float) -> Gauge:
        """`reconcile` or `price`: the time of the last success, from process start on."""
        gauge = self._last_success.get(name)
        if gauge is None:
            gauge = self._gauge(f"{name}_last_success_timestamp_seconds", f"last good {name}")
            gauge.set(start)
            self._last_success[name] = gauge
        return gauge


class ScrapeCollector(Collector):
    """What is computed at the moment of a scrape, on the scraper's thread."""

    def __init__(
        self,
        counts: Mapping[tuple[State, CapacityType], int],
        running: Callable[[], list[tuple[Kind, float]]],
        now: Callable[[], float],
    ) -> None:
        self._counts = counts
        self._running = running
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Inventory by state, work by kind."""
        machines = GaugeMetricFamily(
            f"{PREFIX}_machines", "inventory", labels=("state", "capacity_type")
        )
        for state in State:
            for capacity_type in CapacityType:
                value = self._counts.get((state, capacity_type), 0)
                machines.add_metric((state.word, capacity_type.word), value)
        yield machines
        inflight = GaugeMetricFamily(f"{PREFIX}_transitions_inflight", "running", labels=("kind",))
        age = GaugeMetricFamily(f"{PREFIX}_transition_age_max_seconds", "oldest", labels=("kind",))
        running, now = self._running(), self._now()
        for kind in Kind:
            ages = [now - started for other, started in running if other is kind]
            inflight.add_metric((kind.word,), len(ages))
            age.add_metric((kind.word,), max([0.0, *ages]))
        yield inflight
        yield age
