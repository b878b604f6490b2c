"""One node on its way to being empty, on virtual time."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from bigfleet.kube import Eviction, UnreachableError
from bigfleet.operator.drain.evictor import LAST_WORD_SECONDS, NodeEmptier
from bigfleet.operator.nodes.book import PodOnNode
from bigfleet.operator.nodes.objects import Pod
from kubeobjects import pod, read
from sim.loop import virtual_loop


class SlowApiServer:
    """Answers an eviction after a while; one that loses its caller before is lost."""

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        self.seconds, self.error = seconds, error
        self.outcomes: list[str] = []

    async def evict(self, pod: str, namespace: str, *, uid: str = "") -> Eviction:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.outcomes.append("lost")
            raise
        self.outcomes.append("answered")
        if self.error is not None:
            raise self.error
        return Eviction.EVICTED


class Counts:
    def evicted(self, outcome: str) -> None:
        """No metric counts here."""


def stopped_after(seconds: float, server: SlowApiServer) -> float:
    """A drain is stopped in the middle of an eviction; how long that took."""

    async def story() -> float:
        pods = [PodOnNode(read(Pod, pod("web-0", node="n-1", phase="Running")))]
        emptier = NodeEmptier(
            "n-1", lambda _: pods, server, asyncio.Semaphore(1), Counts(), Random(1)
        )
        loop, running = asyncio.get_running_loop(), asyncio.ensure_future(emptier.run())
        await asyncio.sleep(seconds)
        began = loop.time()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return loop.time() - began

    return virtual_loop(1).run(story())


@pytest.mark.parametrize("error", [None, UnreachableError("away")])
def test_an_eviction_on_its_way_arrives_although_its_drain_is_stopped(
    error: Exception | None,
) -> None:
    server = SlowApiServer(0.3, error)
    assert stopped_after(0.1, server) == pytest.approx(0.2)
    assert server.outcomes == ["answered"]


def test_an_api_server_that_does_not_answer_holds_up_no_other() -> None:
    server = SlowApiServer(60.0)
    assert stopped_after(0.1, server) == pytest.approx(LAST_WORD_SECONDS)
    assert server.outcomes == ["lost"]


class FullBudget:
    """Lets no pod go."""

    async def evict(self, pod: str, namespace: str, *, uid: str = "") -> Eviction:
        return Eviction.BLOCKED


def test_a_pod_that_a_budget_held_and_that_leaves_by_itself_is_waited_for_in_peace() -> None:
    looks = 0

    async def story() -> None:
        held = PodOnNode(read(Pod, pod("web-0", node="n-1", phase="Running")))

        def pods(_node: str) -> list[PodOnNode]:
            nonlocal looks
            looks += 1
            # A look that waits for nothing would keep virtual time from passing.
            return [held] if looks < 20 else []

        emptier = NodeEmptier("n-1", pods, FullBudget(), asyncio.Semaphore(1), Counts(), Random(1))
        running = asyncio.ensure_future(emptier.run())
        await asyncio.sleep(1)
        held.leaving = True
        emptier.wake()
        await asyncio.sleep(60)
        running.cancel()

    virtual_loop(1).run(story())
    assert looks < 20
