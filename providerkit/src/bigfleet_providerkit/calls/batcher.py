"""Calls that take many hosts at once: those that come close together are sent as one.

A batch is sent when nothing was added for 100 ms, a second after its first entry, or when it is
full. Where one bad entry spoils a batch, its entries are sent one by one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bigfleet_providerkit.calls.retry import within
from bigfleet_providerkit.clock import Runtime, Timer
from bigfleet_providerkit.errors import Gone, InvalidRequest

IDLE_S, LONGEST_S, MOST = 0.1, 1.0, 500
SEND_WITHIN_S = 120.0
Send = Callable[[Sequence[str]], Awaitable[None]]


class _Batch:
    """The entries of one call that is yet to be sent."""

    def __init__(self, send: Send, began_monotonic_s: float) -> None:
        self.send = send
        self.began_monotonic_s = began_monotonic_s
        self.waiting: dict[str, list[asyncio.Future[None]]] = {}
        self.timer: Timer | None = None


class Batcher:
    """The open batches, by the name of their call."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._open: dict[str, _Batch] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def add(self, op: str, ref: str, send: Send) -> None:
        """Send `ref` with others of the same call; returns or raises like the call itself."""
        clock = self._runtime.clock
        batch = self._open.get(op)
        if batch is None:
            batch = self._open[op] = _Batch(send, clock.monotonic())
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batch.waiting.setdefault(ref, []).append(mine)
        if batch.timer is not None:
            batch.timer.cancel()
        left = batch.began_monotonic_s + LONGEST_S - clock.monotonic()
        wait = 0.0 if len(batch.waiting) >= MOST else max(0.0, min(IDLE_S, left))
        batch.timer = clock.call_later(wait, lambda: self._begin(op, batch))
        await mine

    def close(self) -> None:
        """Let go of what is being sent."""
        for task in self._sending:
            task.cancel()

    def _begin(self, op: str, batch: _Batch) -> None:
        if self._open.get(op) is batch:
            del self._open[op]
            task = asyncio.get_running_loop().create_task(self._send(batch, list(batch.waiting)))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, batch: _Batch, refs: list[str]) -> None:
        try:
            await within(self._runtime, SEND_WITHIN_S, _sent(batch.send, refs))
        except (Gone, InvalidRequest) as error:
            if len(refs) == 1:
                _settle(batch, refs, error)
                return
            for ref in refs:
                await self._send(batch, [ref])
        except Exception as error:  # noqa: BLE001 - everyone who waits gets it, as from a call
            _settle(batch, refs, error)
        else:
            _settle(batch, refs, None)


async def _sent(send: Send, refs: Sequence[str]) -> None:
    await send(refs)


def _settle(batch: _Batch, refs: Sequence[str], error: Exception | None) -> None:
    for ref in refs:
        for future in batch.waiting[ref]:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
