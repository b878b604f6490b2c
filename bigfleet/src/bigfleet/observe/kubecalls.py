"""Calls to a Kubernetes API server, counted the same way by every component that makes them."""

from __future__ import annotations

from typing import Final

from bigfleet.observe.distribution import MEDIUM
from bigfleet.observe.metrics import OPEN, Instruments

VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
CODE_CLASSES: Final = ("2xx", "4xx", "409", "410", "429", "5xx", "error")


class KubeCalls:
    """Told of every call by the client."""

    def __init__(self, make: Instruments, *, timed: bool) -> None:
        self._api_calls = make.counter(
            "api_requests_total",
            "Kubernetes API calls.",
            verb=VERBS,
            resource=OPEN,
            code_class=CODE_CLASSES,
        )
        self._api_seconds = (
            make.histogram("api_duration_seconds", "Kubernetes API calls.", MEDIUM, verb=VERBS)
            if timed
            else None
        )

    def requested(self, verb: str, resource: str, code_class: str, seconds: float) -> None:
        """One call ended."""
        self._api_calls.labels(verb, resource or "other", code_class).inc()
        if self._api_seconds is not None:
            self._api_seconds.labels(verb).observe(seconds)
