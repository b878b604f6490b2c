"""Single machines: Get, where a List would come too late or say too much.

After a failed action the truth about one machine is wanted at once; and a provider without cursors
is not asked for everything each second because one machine is on its way. Never more than so many
a second, whatever is wanted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bigfleet.model import MachineError
from bigfleet.observe.process import Clock
from bigfleet.provider import MachineNotFoundError, ProviderError, RefusedRecord
from bigfleet.shard.providers.answers import Answer, Inbox
from bigfleet.shard.providers.provider_poll import Feed

# How often something may be done: so many a second, a tenth of that at once.


class Bucket:
    """Gives out moments. Those who come too early wait for theirs."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._clock = clock
        self._apart = 1 / per_second
        self._ahead = max(0.0, 0.1 - self._apart)
        """How far the moments may run ahead of time."""
        self._next = float("-inf")

    async def take(self) -> None:
        """Wait for the next moment."""
        now = self._clock.monotonic()
        moment = max(self._next, now - self._ahead)
        self._next = moment + self._apart
        if moment > now:
            await asyncio.sleep(moment - now)


PER_SECOND: Final = 200
_AT_ONCE: Final = 32
_log = logging.getLogger(__name__)


class GetPoller:
    """Asks for the machines that feeds want to see."""

    def __init__(self, inbox: Inbox, clock: Clock, on_arrival: Callable[[Answer], None]) -> None:
        self._inbox = inbox
        self._clock = clock
        self._on_arrival = on_arrival
        self._bucket = Bucket(PER_SECOND, clock)

    async def run(self, feed: Feed) -> None:
        """Serve one provider's wishes until cancelled."""
        places = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while True:
                await feed.get_wanted.wait()
                if not feed.gets:
                    feed.get_wanted.clear()
                    continue
                await places.acquire()
                await self._bucket.take()
                machine_id = next(iter(feed.gets))
                del feed.gets[machine_id]
                task = group.create_task(self._get(feed, machine_id))
                task.add_done_callback(lambda _: places.release())

    async def _get(self, feed: Feed, machine_id: str) -> None:
        answer = Answer(feed.name, self._clock.monotonic())
        try:
            machine = await feed.client.get(machine_id)
        except MachineNotFoundError:
            # Only a full List tells of what is gone.
            feed.want_full(self._clock.monotonic())
            return
        except ProviderError as error:
            _log.warning(
                "reconcile failed",
                extra={"provider": feed.name, "machine": machine_id, "error": str(error)},
            )
            return
        except MachineError as error:
            answer.refused.append((RefusedRecord(machine_id, error), 0))
        else:
            answer.machines.append((machine, 0))
        await self._inbox.put(answer)
        self._on_arrival(answer)
