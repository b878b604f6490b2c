"""What processes with several replicas share: how long their leases last, and why one is not ready.

Who is elected is `lease`'s business; what a process waits for, its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bigfleet.kube.lease import LeaseTimes

PATIENT: Final = LeaseTimes(duration=4, give_up=3.3, renew=0.8, retry=0.4)
"""An API server that takes thousands of Pods answers late, and who lost its lease starts over; yet
a hand-over after a crash takes under 5 s."""
_SECONDS: Final = 0.1
_log = logging.getLogger(__name__)


class Readiness:
    """Why a process is not ready, looked up on the event loop and read by another thread."""

    def __init__(self, why_not: Callable[[], str]) -> None:
        """`why_not` gives the reason for people; empty when ready."""
        self._why_not = why_not
        self.reason = why_not()

    def __str__(self) -> str:
        return self.reason

    async def follow(self) -> None:
        """Look now and then, until cancelled; what it waits for is said once."""
        logged = ""
        while True:
            self.reason = self._why_not()
            if self.reason and self.reason != logged:
                _log.info("waiting", extra={"reason": self.reason})
            logged = self.reason
            await asyncio.sleep(_SECONDS)
