"""Attempts that wait for a worker, and whose turn it is.

First come, first served, but no peer gets all the workers: steps that need the answers of one
provider, or of one cluster's operator, keep at most `SHARE` times as many of them as are still
free, and the last free one is for a peer that has none. So one peer that hangs keeps seven eighths
of the workers, two keep fourteen fifteenths together, and the next attempt finds one.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.shard.act.attempts import NO_PEER, Attempt, Peer

K = ActionKind
SHARE: Final = 7


def peer_of(attempt: Attempt) -> Peer:
    """Whose answer its next step waits for."""
    order = attempt.order
    if order.kind is K.BOOTSTRAP and attempt.blob is None:
        return "cluster", order.cluster
    if order.kind in (K.RECLAIM, K.PREEMPT, K.KEEP) and not attempt.drain:
        return NO_PEER
    return "provider", order.provider


class FairQueue:
    """Attempts in the order they came, the workers that wait for one, and who keeps a worker."""

    def __init__(self, workers: int) -> None:
        self._free = workers
        self._numbers = count(1)
        self._lines: dict[Peer, list[tuple[int, Attempt]]] = {}
        self._heads: list[tuple[int, Peer]] = []
        """The number of the first in each line; a heap, as the lines are."""
        self._waiting = 0
        self._begun: Counter[Peer] = Counter()
        self._workers: deque[asyncio.Future[None]] = deque()
        """Workers that wait for an attempt."""

    def __len__(self) -> int:
        return self._waiting

    def put(self, attempt: Attempt) -> None:
        """Wait for the next step; after the first one it keeps its place."""
        attempt.number = attempt.number or next(self._numbers)
        attempt.peer = peer_of(attempt)
        line = self._lines.setdefault(attempt.peer, [])
        heappush(line, (attempt.number, attempt))
        if line[0][0] == attempt.number:
            heappush(self._heads, (attempt.number, attempt.peer))
        self._waiting += 1
        self._wake()

    async def next(self) -> Attempt:
        """The first that may begin, as soon as there is one; it keeps a worker until `ended`."""
        while (attempt := self.take()) is None:
            worker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._workers.append(worker)
            await worker
        # One attempt, or one worker that came free, may let more than one begin.
        self._wake()
        return attempt

    def take(self) -> Attempt | None:
        """The first that may begin, or None; it keeps a worker until `ended`."""
        peer = self._next()
        if peer is None:
            return None
        line = self._lines[peer]
        _, attempt = heappop(line)
        if line:
            heappush(self._heads, (line[0][0], peer))
        else:
            del self._lines[peer]
        self._waiting -= 1
        self._free -= 1
        self._begun[peer] += 1
        return attempt

    def ended(self, attempt: Attempt) -> None:
        """Its step is over and its worker free."""
        self._free += 1
        self._begun[attempt.peer] -= 1
        if not self._begun[attempt.peer]:
            del self._begun[attempt.peer]
        self._wake()

    def asking(self, cluster: str) -> Iterable[Attempt]:
        """Those that are about to ask this cluster's operator."""
        return (attempt for _, attempt in self._lines.get(("cluster", cluster), ()))

    def drop_all(self) -> list[Attempt]:
        """All attempts that wait; the queue is empty afterwards."""
        dropped = sorted(
            (one for line in self._lines.values() for one in line), key=lambda one: one[0]
        )
        self._lines.clear()
        self._heads.clear()
        self._waiting = 0
        return [attempt for _, attempt in dropped]

    def _wake(self) -> None:
        while self._waiting and self._workers:
            worker = self._workers.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    def _next(self) -> Peer | None:
        """The line whose first has waited longest, of those that may begin; off the heap."""
        most = max(1, SHARE * (self._free - 1))
        passed = []
        found = None
        while self._free and self._heads and found is None:
            number, peer = heappop(self._heads)
            line = self._lines.get(peer)
            if line is None or line[0][0] != number:
                # An attempt came back to a place before it, or its line is gone.
                continue
            if peer != NO_PEER and self._begun[peer] >= most:
                passed.append((number, peer))
            else:
                found = peer
        for head in passed:
            heappush(self._heads, head)
        return found
