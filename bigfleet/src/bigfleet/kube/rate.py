"""The client's own limit of requests a second, so that it never is the cluster's problem.

A bucket of `burst` tokens refills at `qps`; who finds it empty waits for its turn, first come,
first served. Watches take a token when they start and none while they last.
"""

from __future__ import annotations

from bigfleet.kube.ports import KubeClock


class RateLimit:
    """A token bucket that hands out turns in order."""

    def __init__(self, qps: float, burst: int, clock: KubeClock) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(
                f"qps={qps} and burst={burst}: give a rate above 0 and a burst of 1 or more"
            )
        self._qps = qps
        self._burst = burst
        self._clock = clock
        # Tokens are counted as time: a turn may be taken once this moment is not in the future.
        self._next_turn = clock.monotonic() - burst / qps

    async def turn(self) -> None:
        """Wait for a turn and take it."""
        now = self._clock.monotonic()
        self._next_turn = max(self._next_turn, now - self._burst / self._qps) + 1 / self._qps
        wait = self._next_turn - now
        if wait > 0:
            await self._clock.sleep(wait)
