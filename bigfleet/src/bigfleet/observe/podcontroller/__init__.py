"""Everything a pod controller counts."""

from bigfleet.observe.podcontroller.metrics import PodControllerMetrics

__all__ = ["PodControllerMetrics"]
