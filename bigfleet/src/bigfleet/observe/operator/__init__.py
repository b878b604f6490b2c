"""Everything an operator counts.

demand_metrics  roll-ups, acknowledgements, the session
write_metrics   UpcomingNodes, bootstrap data, drains, evictions
metrics         `OperatorMetrics`, which is all of it
"""

from bigfleet.observe.operator.metrics import OperatorMetrics

__all__ = ["OperatorMetrics"]
