"""Everything a coordinator counts.

    store_metrics    leadership, state writes, the store, exports
    request_metrics  shards, instructions, moves between shards, refused callers
    metrics          `CoordinatorMetrics`, which is all of it

Parts of a coordinator call plain methods; only this package knows the metrics library.
"""

from bigfleet.observe.coordinator.metrics import CoordinatorMetrics

__all__ = ["CoordinatorMetrics"]
