"""What a substrate raised outside of a transition, as one of the kit's classes.

Listings, prices, cleanups and notices run in the background for as long as the provider does. A
provider's own mistake in one of them (a field that is missing in an answer, say) is counted and
told with its traceback, and then treated like a call that failed: tried again.
"""

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.errors import Retryable, SubstrateError
from bigfleet_providerkit.http.metrics import Metrics


def classed(error: Exception, metrics: Metrics, log: FilteringBoundLogger) -> SubstrateError:
    """The class of an error; what is none of them is a bug, and Retryable."""
    if isinstance(error, SubstrateError):
        return error
    metrics.panics.inc()
    log.error("the substrate met a bug", exc_info=error)
    return Retryable(f"{type(error).__name__}: {error}")
