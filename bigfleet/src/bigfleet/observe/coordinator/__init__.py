"""Everything a coordinator counts: `metrics`.

Parts of a coordinator call plain methods; only this package knows the metrics library.
"""

from bigfleet.observe.coordinator.metrics import CoordinatorMetrics

__all__ = ["CoordinatorMetrics"]
