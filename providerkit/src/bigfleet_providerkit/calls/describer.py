"""One look at many hosts, shared by all transitions that wait for one of them.

A hundred Creates that each polled its own host would use up the quota of an account. Here everyone
who waits names a ref, and once per window one listing by refs answers all of them. The window is
the poll interval, and longer where one look takes many calls: looks use at most half of the rate.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

from bigfleet_providerkit.calls.limiter import polling
from bigfleet_providerkit.calls.retry import within
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import Retryable
from bigfleet_providerkit.substrate import Host

LOOK_WITHIN_S = 60.0
SHARE_OF_RATE = 0.5
Describe = Callable[[Sequence[str]], Awaitable[Sequence[Host]]]

rate_used_s: ContextVar[list[float] | None] = ContextVar("rate_used_s", default=None)
"""Inside a look: for each call the seconds in which its bucket grows by one call."""


async def _not_open(refs: Sequence[str]) -> Sequence[Host]:
    raise Retryable("the substrate is not open yet")


class Describer:
    """Collects the refs that are waited for and looks at them together."""

    def __init__(
        self,
        runtime: Runtime,
        window: float,
        key: Callable[[Host], str] = lambda host: host.ref,
    ) -> None:
        self._runtime = runtime
        self._key = key
        self._shortest = window
        self._waiting: dict[str, list[asyncio.Future[Host | None]]] = {}
        self._rounds: asyncio.Task[None] | None = None
        self.window = window
        self.describe: Describe = _not_open

    async def look(self, ref: str) -> Host | None:
        """The host as the next shared look shows it; None when it is not shown. `ref` is what
        `key` reads from a host."""
        mine: asyncio.Future[Host | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ref, []).append(mine)
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.get_running_loop().create_task(self._look_while_waited_for())
        return await mine

    def close(self) -> None:
        """No further looks."""
        if self._rounds is not None:
            self._rounds.cancel()

    async def _look_while_waited_for(self) -> None:
        while self._waiting:
            await self._runtime.clock.sleep(self.window)
            batch, self._waiting = self._waiting, {}
            wanted = {
                ref: futures
                for ref, futures in batch.items()
                if not all(future.done() for future in futures)
            }
            if wanted:
                await self._look(wanted)

    async def _look(self, wanted: dict[str, list["asyncio.Future[Host | None]"]]) -> None:
        used: list[float] = []
        rate_used_s.set(used)
        waiting = [future for futures in wanted.values() for future in futures]
        try:
            with polling():
                work = within(self._runtime, LOOK_WITHIN_S, self._listed(list(wanted)))
                shown = {self._key(host): host for host in await work}
        except Exception as error:  # noqa: BLE001 - everyone who waits gets it, as from a call
            for future in waiting:
                if not future.done():
                    future.set_exception(error)
        else:
            for ref, futures in wanted.items():
                for future in futures:
                    if not future.done():
                        future.set_result(shown.get(ref))
        self.window = max(self._shortest, sum(used) / SHARE_OF_RATE)

    async def _listed(self, refs: Sequence[str]) -> Sequence[Host]:
        return await self.describe(refs)
