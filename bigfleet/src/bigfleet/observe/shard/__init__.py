"""Everything a shard counts.

    cycle_metrics     cycles and their phases, actions decided, rails
    action_metrics    how actions ended, how long machines took
    provider_metrics  providers: calls, losses, refused records
    session_metrics   operator sessions, roll-ups, and the coordinator
    fleet             inventory, demand, shortfalls and spend of the last cycle, computed when
                      scraped
    ages              how long the oldest machine is in each moving state
    metrics           `ShardMetrics`, which is all of it

Parts of a shard call plain methods; only this package knows the metrics library.
"""

from bigfleet.observe.shard.fleet import AGE_BUCKETS, ShortfallCounts
from bigfleet.observe.shard.metrics import ShardMetrics

__all__ = ["AGE_BUCKETS", "ShardMetrics", "ShortfallCounts"]
