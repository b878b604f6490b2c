"""What sessions count and measure; the names and buckets of the metrics are the registry's."""

from __future__ import annotations

from typing import Protocol


class SessionMetrics(Protocol):
    """One method per thing that happens."""

    def session_event(self, event: str, active: int) -> None:
        """A session was installed, removed or replaced; so many are open now."""
        ...

    def session_identity_rejected(self) -> None:
        """A certificate did not fit the cluster id."""
        ...

    def rollup_accepted(self, cluster: str) -> None:
        """A roll-up was applied."""
        ...

    def rollup_rejected(self, cluster: str) -> None:
        """A roll-up was refused whole."""
        ...

    def rollup_quarantined(self, cluster: str, held: bool) -> None:
        """Whether the cluster's newest roll-up is held."""
        ...

    def rollup_ingest(self, seconds: float) -> None:
        """A roll-up was decoded, checked and compared."""
        ...
