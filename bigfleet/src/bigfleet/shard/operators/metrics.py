"""What sessions count and measure; the names and buckets of the metrics are the registry's."""

from __future__ import annotations

from typing import Protocol


class SessionMetrics(Protocol):
    """One method per thing that happens."""

    def session_event(self, event: str, active: int) -> None:
        """A session was installed, removed or replaced; so many are open now."""

    def session_identity_rejected(self) -> None:
        """A certificate did not fit the cluster id."""
