"""Providers as a shard sees them: calls, losses, refused records, and how old their answers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

from bigfleet.model import REJECT_REASONS, CapacityType
from bigfleet.observe.distribution import MEDIUM, Series
from bigfleet.observe.metrics import CAPACITY_TYPES, OPEN, Instruments
from bigfleet.observe.shard.fleet import capacity_label

METHODS: Final = ("Create", "Configure", "Drain", "Delete", "Get", "List")
_NS: Final = 1e9


class ProviderMetrics:
    """Written by the parts that call providers."""

    def __init__(self, make: Instruments, now: Callable[[], int]) -> None:
        self._now_ns = now
        self._lost = make.counter(
            "machines_lost_total",
            "Bound machines that vanished or failed.",
            capacity_type=CAPACITY_TYPES,
        )
        self._jumps = make.counter("state_jumps_total", "Observed changes that skip a step.")
        self._refused = make.counter(
            "machines_rejected_total", "Records refused at ingest.", reason=REJECT_REASONS
        )
        self._removals_held = make.gauge(
            "provider_removals_held",
            "Machines whose disappearance is not believed yet.",
            provider=OPEN,
            region=OPEN,
        )
        self._calls = make.counter(
            "provider_rpc_total", "Calls.", provider=OPEN, method=OPEN, code=OPEN
        )
        self._seconds = make.histogram(
            "provider_rpc_duration_seconds", "Calls.", MEDIUM, provider=OPEN, method=OPEN
        )
        self._age = make.gauge(
            "provider_reconcile_age_seconds",
            "Since the last List answer was merged.",
            provider=OPEN,
            region=OPEN,
        )
        self._merged: dict[tuple[str, str], int] = {}
        self._per_call: dict[tuple[str, str, str], tuple[Counter, Series]] = {}
        """Series by what they are about: looking them up costs more than counting."""

    def provider_known(self, provider: str, region: str) -> None:
        """A provider is dialled from now on: its series begin, and its age counts."""
        key = (provider, region)
        if key in self._merged:
            return
        self._merged[key] = self._now_ns()
        self._removals_held.labels(*key).set(0)
        self._age.labels(*key).set_function(lambda: self._age_of(key))
        for method in METHODS:
            self._calls.labels(provider, method, "OK")

    def provider_gone(self, provider: str, region: str) -> None:
        """A provider is no longer dialled."""
        if self._merged.pop((provider, region), None) is not None:
            self._removals_held.remove(provider, region)
            self._age.remove(provider, region)

    def provider_merged(self, provider: str, region: str) -> None:
        """A List answer was merged."""
        self.provider_known(provider, region)
        self._merged[provider, region] = self._now_ns()

    def removals_held(self, provider: str, region: str, count: int) -> None:
        """Machines that are absent and not believed to be gone."""
        self.provider_known(provider, region)
        self._removals_held.labels(provider, region).set(count)

    def provider_call(self, provider: str, method: str, code: str, seconds: float) -> None:
        """One call ended with a gRPC status name."""
        key = (provider, method, code)
        known = self._per_call.get(key)
        if known is None:
            counter = self._calls.labels(provider, method, code)
            known = self._per_call[key] = (counter, self._seconds.labels(provider, method))
        known[0].inc()
        known[1].observe(seconds)

    def machine_lost(self, capacity_type: CapacityType) -> None:
        """A bound machine vanished or failed."""
        self._lost.labels(capacity_label(capacity_type)).inc()

    def state_jump(self) -> None:
        """An observed change skipped a step."""
        self._jumps.inc()

    def machine_rejected(self, reason: str) -> None:
        """A record was refused: `price`, `interruption_probability` or `structural`."""
        self._refused.labels(reason).inc()

    def _age_of(self, key: tuple[str, str]) -> float:
        since = self._merged.get(key)
        return 0.0 if since is None else max(0.0, (self._now_ns() - since) / _NS)
