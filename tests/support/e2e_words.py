"""The types that e2e tests name."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from real_fleet import Fleet


class FleetOn(Protocol):
    """Starts a fleet on one cluster or on both."""

    def __call__(self, clusters: int = 1, **options: Any) -> AbstractContextManager[Fleet]: ...
