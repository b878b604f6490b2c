"""Empties one node: asks each Pod to leave, and again those whose budgets did not allow it.

A Pod that was asked is waited for until it is gone; new ones that were bound in the meantime are
asked as well. Pods that belong to the node stay. Ends when nothing is left, or is cancelled from
outside when the time is over. Who is being asked at that moment gets to hear it: an API server that
loses its caller between counting a Pod as gone and deleting it keeps the budget for two minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from random import Random
from typing import Final, Protocol

from bigfleet.kube import Eviction, KubeError
from bigfleet.operator.nodes.book import PodOnNode

BLOCKED_SECONDS: Final = 5.0
"""How long a Pod whose budget said no is left alone before it is asked again."""
LOOK_SECONDS: Final = 10.0
"""A node is looked at that often although nothing was heard of it."""
LAST_WORD_SECONDS: Final = 0.5
"""How long an eviction that is on its way is waited for when it is not wanted any more."""
_log = logging.getLogger(__name__)


class Evictor(Protocol):
    """Asks a Pod to leave."""

    def evict(self, pod: str, namespace: str, *, uid: str = "") -> Coroutine[None, None, Eviction]:
        """What the API server says to it."""


class EvictionMetrics(Protocol):
    """What is counted."""

    def evicted(self, outcome: str) -> None:
        """success, blocked, gone or error."""


_OUTCOMES: Final = {
    Eviction.EVICTED: "success",
    Eviction.BLOCKED: "blocked",
    Eviction.GONE: "gone",
}


class NodeEmptier:
    """One node on its way to being empty."""

    def __init__(
        self,
        node_name: str,
        pods: Callable[[str], list[PodOnNode]],
        evictor: Evictor,
        room: asyncio.Semaphore,
        counts: EvictionMetrics,
        rng: Random,
    ) -> None:
        self._node, self._pods, self._evictor = node_name, pods, evictor
        self._room, self._counts, self._rng = room, counts, rng
        self._not_before: dict[str, float] = {}
        """By UID: when a Pod may be asked again."""
        self._evicted: set[str] = set()
        self._news = asyncio.Event()
        self._released = False

    def release(self) -> None:
        """It need not be emptied any more."""
        self._released = True
        self._news.set()

    def wake(self) -> None:
        """Something on the node changed."""
        self._news.set()

    async def run(self) -> None:
        """Until the node is empty."""
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            left = self._pods(self._node)
            if not left or self._released:
                return
            due = [pod for pod in left if self._is_due(pod, loop.time())]
            if due:
                async with asyncio.TaskGroup() as group:
                    for pod in due:
                        group.create_task(self._ask(pod))
            # Who leaves already has no turn any more; one long past would end every wait at once.
            turns = [self._not_before.get(pod.uid, 0.0) for pod in left if self._is_to_ask(pod)]
            until = min([*turns, loop.time() + LOOK_SECONDS])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(max(until, loop.time())):
                    await self._news.wait()

    def _is_due(self, pod: PodOnNode, now: float) -> bool:
        return self._is_to_ask(pod) and self._not_before.get(pod.uid, 0.0) <= now

    def _is_to_ask(self, pod: PodOnNode) -> bool:
        return not (pod.leaving or pod.uid in self._evicted)

    async def _ask(self, pod: PodOnNode) -> None:
        async with self._room:
            try:
                answer = await _to_its_end(
                    self._evictor.evict(pod.name, pod.namespace, uid=pod.uid)
                )
            except KubeError as error:
                self._counts.evicted("error")
                _log.warning(
                    "eviction failed",
                    extra={"pod": f"{pod.namespace}/{pod.name}", "error": str(error)},
                )
                self._later(pod)
                return
        self._counts.evicted(_OUTCOMES[answer])
        if answer is Eviction.BLOCKED:
            self._later(pod)
        else:
            self._evicted.add(pod.uid)

    def _later(self, pod: PodOnNode) -> None:
        wait = BLOCKED_SECONDS * self._rng.uniform(0.8, 1.2)
        self._not_before[pod.uid] = asyncio.get_running_loop().time() + wait


async def _to_its_end(eviction: Coroutine[None, None, Eviction]) -> Eviction:
    """Its answer. Cancelled, it is still given the time to arrive."""
    asking = asyncio.ensure_future(eviction)
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        await asyncio.wait({asking}, timeout=LAST_WORD_SECONDS)
        if asking.done() and not asking.cancelled():
            asking.exception()  # looked at, so that asyncio does not log it later
        asking.cancel()
        raise
