"""A small evaluator of the part of PromQL in which promised queries and alerts are written.

    parser      text -> tree; what it does not know it refuses
    series      samples by their labels, from scrapes or from elsewhere
    evaluator   tree and samples -> values by labels, at a time

With it every promised query can be asked where no Prometheus is installed. Where one is, both
evaluate the same samples, and a test wants the same answers. Known are sum, max, min, rate,
increase, changes, time, histogram_quantile, quantile_over_time over a subquery, offset, arithmetic,
comparison and `and on`; nothing else.
"""

from promql.evaluator import evaluate
from promql.parser import QueryError, parse
from promql.series import Labels, Samples

__all__ = ["Labels", "QueryError", "Samples", "evaluate", "parse"]
