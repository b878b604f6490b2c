"""Clients of scripted API servers: quick to try again, and without waiting."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api_server import ApiServer
from bigfleet.kube import ClusterConfig, KubeClient
from bigfleet.kube.config import TokenSource


@dataclass
class HastyClock:
    """The loop's time, but sleeping takes none; how long it would have been is kept."""

    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class LoopClock:
    """The loop's time, virtual or not, and a wall clock that goes with it."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class Counts:
    """An observer that keeps what it is told."""

    requests: list[tuple[str, str, str]] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)

    def requested(self, verb: str, resource: str, code_class: str, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((verb, resource, code_class))

    def watch_restarted(self, resource: str, reason: str) -> None:
        self.restarts.append(reason)


@asynccontextmanager
async def client_of(
    server: ApiServer,
    *,
    clock: HastyClock | None = None,
    observer: Counts | None = None,
    token: TokenSource = lambda: "",
) -> AsyncIterator[KubeClient]:
    """A client of a scripted server."""
    client = KubeClient.connect(
        ClusterConfig(server.url, namespace="ours", token=token),
        qps=1e6,
        burst=1000,
        clock=clock or HastyClock(),
        chance=random.Random(1),
        observer=observer,
    )
    async with client:
        yield client


async def until(condition: Callable[[], bool]) -> None:
    """Until a condition holds; the loop goes on in between."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing here rings a bell
            await asyncio.sleep(0.005)
