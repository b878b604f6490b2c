"""One registry per component, and instruments whose closed series exist from the start.

A process with several components has several registries, each behind its own port, so that sums
over a fleet count nothing twice. What is counted, and when, is told beside the thing that is
counted; here are the rules that hold for all of them.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from bigfleet.observe.distribution import Distribution
from bigfleet.observe.pages import Registry

# Creation times would be a second series beside every counter and histogram.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

STATES: Final = (
    "Speculative", "Creating", "Idle", "Configuring",
    "Configured", "Draining", "Deleting", "Failed",
)  # fmt: skip
CAPACITY_TYPES: Final = ("BareMetal", "Reserved", "OnDemand", "Spot")
PENALTY_BUCKETS: Final = ("0", "0.5", *(str(2**power) for power in range(24)), "pinned")
PRIORITY_CLASSES: Final = ("critical", "service", "batch", "other")

Values = Sequence[str]
"""The closed list of a label's values; empty for an open label."""
OPEN: Final[Values] = ()


@dataclass(frozen=True)
class Instruments:
    """Makes instruments of one component: `bigfleet_shard_` and the name."""

    prefix: str
    registry: CollectorRegistry = field(default_factory=Registry)

    def counter(self, name: str, meaning: str, **labels: Values) -> Counter:
        """A counter; its name ends in `_total`."""
        made = Counter(self.prefix + name, meaning, tuple(labels), registry=self.registry)
        _present(made, labels)
        return made

    def gauge(self, name: str, meaning: str, **labels: Values) -> Gauge:
        made = Gauge(self.prefix + name, meaning, tuple(labels), registry=self.registry)
        _present(made, labels)
        return made

    def gauge_of(self, name: str, meaning: str, value: Callable[[], float | None]) -> None:
        """A gauge that is asked for its value at each scrape; None leaves it out."""
        self.registry.register(_GaugeOf(self.prefix + name, meaning, value))

    def histogram(
        self, name: str, meaning: str, bounds: Sequence[float], **labels: Values
    ) -> Distribution:
        """A histogram of seconds."""
        made = Distribution(self.prefix + name, meaning, bounds, tuple(labels))
        self.registry.register(made)
        _present(made, labels)
        return made


class _GaugeOf(Collector):
    """A gauge that is there or not."""

    def __init__(self, name: str, meaning: str, value: Callable[[], float | None]) -> None:
        self._name, self._meaning, self._value = name, meaning, value

    def describe(self) -> Iterable[Metric]:
        """The name alone."""
        return [GaugeMetricFamily(self._name, self._meaning)]

    def collect(self) -> Iterable[Metric]:
        """The gauge, where there is something to say."""
        family = GaugeMetricFamily(self._name, self._meaning)
        value = self._value()
        if value is not None:
            family.add_metric((), value)
        return [family]


def _present(made: Counter | Gauge | Distribution, labels: dict[str, Values]) -> None:
    """Series whose labels are all closed are there from the start, with the value 0."""
    if labels and all(labels.values()):
        for values in itertools.product(*labels.values()):
            made.labels(*values)


class CommonMetrics:
    """What every process exports, whatever it is."""

    def __init__(
        self, registry: CollectorRegistry, component: str, version: str, revision: str
    ) -> None:
        info = Gauge(
            "bigfleet_build_info",
            "What runs here; always 1.",
            ("component", "version", "revision", "python"),
            registry=registry,
        )
        info.labels(component, version, revision, platform.python_version()).set(1)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._registry = registry
        self._expiry: Gauge | None = None

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When the certificate in use ends; of a bundle the earliest. There only with TLS."""
        if self._expiry is None:
            self._expiry = Gauge(
                "bigfleet_tls_certificate_expiry_timestamp_seconds",
                "Unix time at which the certificate in use ends.",
                ("role",),
                registry=self._registry,
            )
        self._expiry.labels(role).set(unix_seconds)
