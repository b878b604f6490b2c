"""Everything an operator counts.

demanding    roll-ups, acknowledgements, the session
writing      UpcomingNodes, bootstrap data, drains, evictions
metrics      `OperatorMetrics`, which is all of it
"""

from bigfleet.observe.operator.metrics import OperatorMetrics

__all__ = ["OperatorMetrics"]
