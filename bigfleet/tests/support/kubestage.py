"""An operator on virtual time, between an API server in memory and a scripted shard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from bigfleet.kube import EventRecorder
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.operator.bootstrap.template import ApiServer, BootstrapTemplate, Surroundings
from bigfleet.operator.operator import (
    ClusterOperator,
    Identity,
    OperatorConfig,
    OperatorEnvironment,
)
from bigfleet.operator.watches import OperatorWatches
from bigfleet_lab.simcluster.memory import MemoryDial, MemoryLine
from kubefake import FakeApiServer
from kubeobjects import capacity_request
from scripted_shard import ScriptedShard
from sim.loop import virtual_loop
from sim.ports import SimClock

T = TypeVar("T")
CLUSTER = "c-1"


class OperatorDial:
    """Lines to a scripted shard."""

    def __init__(self, shard: ScriptedShard) -> None:
        self._dial = MemoryDial(shard.serve)
        self.lines: list[MemoryLine] = []

    async def __call__(self) -> MemoryLine:
        line = await self._dial(CLUSTER)
        self.lines.append(line)
        return line

    async def close(self) -> None:
        await self._dial.close()


class Stage:
    """Everything a scene needs."""

    def __init__(self, template: str | None = None, seed: int = 1) -> None:
        self.api = FakeApiServer()
        self.shard = ScriptedShard()
        self._template, self._seed = template, seed
        self._running: asyncio.Task[None] | None = None
        self._leading: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.start()

    def start(self) -> None:
        """A new life of the operator."""
        clock = SimClock()
        self.client = self.api.client()
        self.metrics = OperatorMetrics(clock.monotonic, version="1")
        self.dial = OperatorDial(self.shard)
        around = Surroundings(CLUSTER, ApiServer("https://api.example:6443"))
        template = (
            None
            if self._template is None
            else BootstrapTemplate(self._template, "template", around)
        )
        world = OperatorEnvironment(
            client=self.client,
            urgent=self.client,
            dial=self.dial,
            clock=clock,
            metrics=self.metrics,
            events=EventRecorder(self.client, "bigfleet-operator"),
            template=template,
            rng=Random(self._seed),
            unguessable=Random(self._seed),
        )
        self.operator = ClusterOperator(Identity(CLUSTER, "1.2.3"), world, OperatorConfig())
        self.watches = OperatorWatches(self.client, self.operator)
        self._running = asyncio.ensure_future(self._live())

    async def kill(self) -> None:
        """The operator dies; nothing is said to anybody."""
        if self.dial.lines:
            self.dial.lines[-1].drop()
        await self.stop()

    async def stop(self) -> None:
        """The operator ends."""
        if self._running is not None:
            self._leading.cancel()
            self._running.cancel()
            await asyncio.gather(self._leading, self._running, return_exceptions=True)
            self._running = None

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watches.run())
            await self.watches.wait_synced()
            self._leading = group.create_task(self.operator.lead())

    async def lead_again(self) -> None:
        """The lease is lost and taken again, in the same process."""
        self._leading.cancel()
        await asyncio.gather(self._leading, return_exceptions=True)
        self._leading = asyncio.ensure_future(self.operator.lead())

    def counted(self, name: str, **labels: str) -> float:
        """The value of a metric."""
        value = self.metrics.registry.get_sample_value(f"bigfleet_operator_{name}", labels)
        return -1.0 if value is None else value


async def until(holds: Callable[[], object], seconds: float = 600.0) -> None:
    """Wait until something holds, on virtual time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not holds():
        assert loop.time() < end, "it never came to pass"
        await asyncio.sleep(0.05)


def request(name: str, **spec: Any) -> dict[str, Any]:
    """A CapacityRequest as a person creates it."""
    document = capacity_request(name, **spec)
    del document["metadata"]["uid"]
    return document


def phase(api: FakeApiServer, name: str) -> str:
    """How far a CapacityRequest is."""
    found = api.get("CapacityRequest", name, "default")
    assert found is not None
    text: str = found["status"]["phase"]
    return text


def two_requests(api: FakeApiServer) -> None:
    """Two of them, of one row."""
    api.put(request("a"))
    api.put(request("b"))


def play(
    scene: Callable[[Stage], Awaitable[T]],
    prepare: Callable[[FakeApiServer], object] = lambda _api: None,
    template: str | None = None,
    seed: int = 1,
) -> T:
    """Run a scene with one operator."""

    async def run() -> T:
        stage = Stage(template, seed)
        prepare(stage.api)
        try:
            return await scene(stage)
        finally:
            await stage.stop()

    return virtual_loop(seed).run(run())
