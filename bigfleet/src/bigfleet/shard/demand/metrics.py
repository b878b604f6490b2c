"""What roll-ups are counted by; the names and buckets of the metrics are the registry's."""

from __future__ import annotations

from typing import Protocol


class RollUpMetrics(Protocol):
    """One method per thing that happens to a roll-up."""

    def rollup_accepted(self, cluster: str) -> None:
        """A roll-up was applied."""

    def rollup_rejected(self, cluster: str) -> None:
        """A roll-up was refused whole."""

    def rollup_over_limit(self, cluster: str, limit: str) -> None:
        """A roll-up was refused because it is beyond this limit."""

    def rollup_quarantined(self, cluster: str, held: bool) -> None:
        """Whether the cluster's newest roll-up is held."""

    def rollup_ingest(self, seconds: float) -> None:
        """A roll-up was decoded, checked and compared."""
