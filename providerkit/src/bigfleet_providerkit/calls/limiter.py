"""How fast each call of a substrate may be made: a rate per call name that gives way to throttling.

A throttled call halves its own rate; the rate grows back by a tenth a minute. Waiting happens
before the call, in order, so that a burst becomes a line and not a storm of retries.
"""

from bigfleet_providerkit.clock import Clock

FULL_RATE = 50.0
SLOWEST_RATE = 0.1
GROWTH_PER_MINUTE = 1.1
BURST_SECONDS = 1.0


class Limiter:
    """The rate of one call."""

    def __init__(self, clock: Clock, rate: float = FULL_RATE) -> None:
        self._clock = clock
        self._full = rate
        self._rate = rate
        self._changed = clock.monotonic()
        self._free_at = clock.monotonic() - BURST_SECONDS

    @property
    def rate(self) -> float:
        """Calls a second at this moment."""
        minutes = (self._clock.monotonic() - self._changed) / 60.0
        return float(min(self._full, self._rate * GROWTH_PER_MINUTE**minutes))

    def throttled(self) -> None:
        """The substrate said: slower."""
        self._rate = max(SLOWEST_RATE, self.rate / 2.0)
        self._changed = self._clock.monotonic()

    async def wait(self) -> None:
        """Until it is this caller's turn. Up to one second's worth of calls needs no waiting."""
        rate = self.rate
        now = self._clock.monotonic()
        self._free_at = max(self._free_at + 1.0 / rate, now - BURST_SECONDS)
        if self._free_at > now:
            await self._clock.sleep(self._free_at - now)
