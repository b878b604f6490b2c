"""Everything a pod controller counts: `metrics`."""

from bigfleet.observe.podcontroller.metrics import PodControllerMetrics

__all__ = ["PodControllerMetrics"]
