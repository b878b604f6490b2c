"""A pod controller with an API server in memory, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random

from bigfleet.kube import EventRecorder
from bigfleet.observe.podcontroller import PodControllerMetrics
from bigfleet.podcontroller.arrivals import ComingNodes
from bigfleet.podcontroller.controller import PodController
from bigfleet.podcontroller.notices import PodNotices
from bigfleet.podcontroller.ownership import NodeOwnership
from bigfleet.podcontroller.request import request_name
from bigfleet.podcontroller.resource_claims import ClaimBook
from bigfleet.podcontroller.server import ControllerWatches
from bigfleet.podcontroller.stuck import StuckPods
from kubefake import FakeApiServer
from sim.loop import virtual_loop
from sim.ports import SimClock


class PodStage:
    """An API server in memory and a pod controller."""

    def __init__(
        self,
        api: FakeApiServer | None = None,
        *,
        adopts: bool = True,
        again: float = 0.0,
        classes: Mapping[str, str] | None = None,
    ) -> None:
        self.api = api or FakeApiServer()
        clock = SimClock()
        self.metrics = PodControllerMetrics(version="1")
        client = self.api.client()
        events = EventRecorder(client, "bigfleet-pod-controller")

        def unix_s() -> float:
            return clock.now() / 1e9

        self.ownership = NodeOwnership(unix_s)
        stuck, coming = StuckPods(again, unix_s), ComingNodes(unix_s)
        claims = ClaimBook(classes or {})
        self.notices = PodNotices(events, unix_s)
        self.controller = PodController(
            client, self.notices, self.ownership, self.metrics, Random(1), {}, stuck,
            coming, claims, adopts=adopts, workers=4,
        )  # fmt: skip
        self.watches = ControllerWatches(client, self.controller, self.ownership, claims)
        self._events = events
        self._life = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watches.run())
            await self.watches.wait_synced()
            group.create_task(self.controller.run())
            group.create_task(self._events.run())

    async def stop(self) -> None:
        """End it."""
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)

    def requests(self) -> list[str]:
        """Names of all CapacityRequests."""
        return [one["metadata"]["name"] for one in self.api.all("CapacityRequest")]

    def counted(self, outcome: str) -> float:
        """How often a Pod was looked at with this outcome."""
        name = "bigfleet_unschedulable_pod_controller_reconciles_total"
        value = self.metrics.registry.get_sample_value(name, {"outcome": outcome})
        return value or 0.0


def play(
    scene: Callable[[PodStage], Awaitable[None]],
    prepare: Callable[[FakeApiServer], object] = lambda _api: None,
    *,
    adopts: bool = True,
    again: float = 0.0,
    classes: Mapping[str, str] | None = None,
) -> None:
    """Run a scene with one pod controller."""

    async def run() -> None:
        api = FakeApiServer()
        prepare(api)
        stage = PodStage(api, adopts=adopts, again=again, classes=classes)
        try:
            await scene(stage)
        finally:
            await stage.stop()

    virtual_loop(1).run(run())


def name_of(pod_name: str) -> str:
    """The name of the request of a Pod that `kubeobjects.pod` made."""
    return request_name(pod_name, f"uid-{pod_name}")
