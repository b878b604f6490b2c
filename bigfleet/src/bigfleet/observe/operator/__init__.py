"""Everything an operator counts: `metrics`."""

from bigfleet.observe.operator.metrics import OperatorMetrics

__all__ = ["OperatorMetrics"]
