"""The cloud in memory, with hosts that are lost by chance.

A host's life is drawn when it is launched, by the hourly rate of its capacity type; a restart draws
again for the hosts it finds, which is right because such losses have no memory. Stock, delays and
failures are the kit's MemorySubstrate's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final

from bigfleet_providerkit import CapacityType, Host, Launch, MemorySubstrate
from bigfleet_providerkit.clock import Timer
from bigfleet_providerkit.kit import Kit

_HOUR: Final = 3600.0


class FakeSubstrate(MemorySubstrate):
    """Hosts in memory, some of which do not last."""

    def __init__(
        self,
        kit: Kit,
        *,
        slow: float,
        fail_rate: Mapping[str, float],
        losses: Mapping[CapacityType, float],
        seed: int,
    ) -> None:
        super().__init__(kit, slow=slow, fail_rate=fail_rate, seed=seed)
        self._clock = kit.clock
        self._losses = losses
        self._chance = random.Random(f"losses-{seed}")
        self._timers: dict[str, Timer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for host in self.hosts.values():
            self._draw(host.ref, CapacityType(host.capacity_type))

    def now(self) -> float:
        """Unix seconds, on the clock it runs on."""
        return self._clock.now()

    async def launch(self, order: Launch) -> Host:
        """A host; how long it lives is drawn once."""
        host = await super().launch(order)
        self._draw(host.ref, order.capacity_type)
        return host

    async def terminate(self, host: Host) -> None:
        """A host that was given back is not lost any more."""
        await super().terminate(host)
        timer = self._timers.pop(host.ref, None)
        if timer is not None:
            timer.cancel()

    def set_fail_rate(self, kind: str, share: float) -> None:
        """This share of the calls of a kind fails from now on."""
        self._fail_rate[kind] = share

    async def aclose(self) -> None:
        """No one loses hosts of a provider that has stopped."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _draw(self, ref: str, kind: CapacityType) -> None:
        rate = self._losses.get(kind, 0.0)
        if rate > 0 and ref not in self._timers:
            life = self._chance.expovariate(rate / _HOUR)
            self._timers[ref] = self._clock.call_later(life, lambda: self._end(ref))

    def _end(self, ref: str) -> None:
        del self._timers[ref]
        task = asyncio.get_running_loop().create_task(self.lose(ref))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
