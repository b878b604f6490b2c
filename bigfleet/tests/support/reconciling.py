"""What tests of reconciling share: a disk in memory, work done at once, a cloud that misbehaves.

`Cloud` is a provider behind the transport, so everything above it is the real client. It keeps
revisions like the kit does; its switches make it the providers one meets outside.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, ParamSpec, TypeVar

import grpc

from bigfleet.model import Machine
from bigfleet.model.columns import Symbols
from bigfleet.provider import CallError, ProviderClient, Providers, ProviderSite
from bigfleet.shard.machines.book import Book
from bigfleet.shard.providers.answers import MergeSummary
from bigfleet.shard.providers.lister import Lister
from bigfleet.shard.state.journal import Journal
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet.shard.state.restamps import Restamps
from bigfleet.wire.fencing import FencingStamps
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.loop import virtual_loop

T = TypeVar("T")
P = ParamSpec("P")
SPECULATIVE, CREATING, IDLE, CONFIGURING, CONFIGURED, DRAINING, DELETING, FAILED = range(1, 9)
DOWN = CallError(grpc.StatusCode.UNAVAILABLE, "down")
ZONE = "topology.kubernetes.io/zone"
_HOSTED = (IDLE, CONFIGURING, CONFIGURED, DRAINING, DELETING)
_BOUND = (CONFIGURING, CONFIGURED, DRAINING)


class MemoryDisk:
    """Files in memory. `full` makes every write fail; `tear` lets an append write a part first."""

    def __init__(self, files: dict[str, bytes] | None = None, *, full: bool = False) -> None:
        self.files = dict(files or {})
        self.full = full
        self.tear = 0
        self.appends = 0
        self.replaces = 0

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        return self.files.get(name)

    def replace(self, name: str, content: bytes) -> None:
        """All or nothing."""
        self._check()
        self.replaces += 1
        self.files[name] = content

    def append(self, name: str, content: bytes) -> None:
        """All, or a part and an error."""
        if self.full:
            self.files[name] = self.files.get(name, b"") + content[: self.tear]
        self._check()
        self.appends += 1
        self.files[name] = self.files.get(name, b"") + content

    def _check(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


async def at_once(function: Callable[[], T]) -> T:
    """An offload that computes where it is called."""
    return function()


def record(name: str, state: int = IDLE, cluster: str = "c-1", **fields: object) -> pb.Machine:
    """A record a shard takes."""
    made = pb.Machine(
        id=name, state=state, instance_type="small", zone="z-a",  # type: ignore[arg-type]
        capacity_type=pb.CAPACITY_TYPE_ON_DEMAND, price_per_hour=0.5,
        resources=pb.Resources(resources={"cpu": "4"}),
    )  # fmt: skip
    if state in _HOSTED:
        made.host.CopyFrom(pb.HostRef(provider="region", ref=f"h-{name}"))
    if state in _BOUND:
        made.cluster = cluster
    if state == FAILED:
        made.last_error = "HostLost: gone"
    made.MergeFrom(pb.Machine(**fields))  # type: ignore[arg-type]
    return made


class Cloud:
    """A provider in memory, behind the transport."""

    def __init__(self, name: str = "cloud") -> None:
        self.name = name
        self.machines: dict[str, pb.Machine] = {}
        self.revisions: dict[str, int] = {}
        self.head = 0
        self.error: CallError | None = None
        self.hangs = False
        self.garbage: bytes | None = None
        self.has_cursors = True
        self.echoes_head = False
        self.twice: list[pb.Machine] = []
        self.seconds = 0.0
        """How long an answer takes."""
        self.lists: list[tuple[int, bytes]] = []
        """The cap and the cursor of each List."""
        self.gets: list[str] = []

    def put(self, *machines: pb.Machine) -> None:
        """These are as they are now."""
        for machine in machines:
            self.head += 1
            self.machines[machine.id] = machine
            self.revisions[machine.id] = self.head

    def remove(self, *names: str) -> None:
        """These are gone, without a trace."""
        for name in names:
            self.head += 1
            del self.machines[name], self.revisions[name]

    async def list_raw(self, request: pb.ListFilter, seconds: float) -> bytes:
        """The transport's List."""
        self.lists.append((request.max_results, request.since_revision))
        await self._take_time()
        if self.garbage is not None:
            return self.garbage
        since = self._position(request.since_revision)
        order = sorted((r, name) for name, r in self.revisions.items() if r > since)
        cut = order[: request.max_results] if request.max_results else order
        answer = pb.MachineList(machines=[self.machines[name] for _, name in cut])
        answer.machines.extend(self.twice)
        if self.has_cursors:
            is_cut = len(cut) < len(order) and not self.echoes_head
            answer.revision = b"r%d" % (cut[-1][0] if is_cut else self.head)
        return answer.SerializeToString(deterministic=True)

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """The transport's Get."""
        self.gets.append(request.id)
        await self._take_time()
        if request.id not in self.machines:
            raise CallError(grpc.StatusCode.NOT_FOUND, "no such machine")
        return self.machines[request.id]

    async def close(self) -> None:
        """The transport's end."""

    def _position(self, cursor: bytes) -> int:
        if not self.has_cursors or not cursor.startswith(b"r"):
            return 0
        return int(cursor[1:])

    async def _take_time(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error


def cloud_of(*names: str, state: int = IDLE, name: str = "cloud") -> Cloud:
    """A provider with machines of these names."""
    cloud = Cloud(name)
    cloud.put(*(record(each, state) for each in names))
    return cloud


class LoopClock:
    """The event loop's time, and a wall clock that goes with it."""

    def now(self) -> int:
        """Unix nanoseconds."""
        return 1_700_000_000_000_000_000 + int(self.monotonic() * 1e9)

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()


class Shard:
    """The reconciling part of a shard, with its clouds."""

    def __init__(self, *clouds: Cloud, disk: MemoryDisk | None = None, page: int = 20_000) -> None:
        self.clouds = {cloud.name: cloud for cloud in clouds}
        self.disk = disk or MemoryDisk()
        self.clock = LoopClock()
        self.book = Book(Symbols(), self.clock)
        self.journal = Journal(self.disk, at_once)
        self.restamps = Restamps(self.disk, at_once)
        self.ownership = OwnershipFile(self.disk, at_once)
        self.ownership.load()
        self.woken = asyncio.Event()
        self.calls: list[tuple[str, str]] = []
        """Method and status of every call that ended."""
        self.providers = Providers(self._connect)
        self.lister = Lister(
            self.book, self.providers, self.ownership, self.journal, self.clock, at_once,
            Random(1), remembered=self.journal.load(), restamped=self.restamps.load(),
            on_arrival=self.woken.set, page=page,
        )  # fmt: skip
        self.tasks: list[asyncio.Task[None]] = []

    def _connect(self, site: ProviderSite) -> ProviderClient:
        transport = self.clouds[site.name]
        return ProviderClient(
            site,
            FencingStamps("shard-a", 1),
            transport,  # type: ignore[arg-type]
            lambda _provider, method, code, _seconds: self.calls.append((method, code)),
        )

    async def use(self, *names: str) -> None:
        """These providers and no others."""
        await self.providers.use([ProviderSite(name, f"{name}:1", "region") for name in names])
        self.lister.providers_changed()

    async def start(self) -> None:
        """Begin to ask all clouds."""
        await self.use(*self.clouds)
        self.tasks = [
            asyncio.create_task(self.lister.run()),
            asyncio.create_task(self.journal.run()),
        ]

    async def stop(self) -> None:
        """Stop everything at once."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def after(self, seconds: float) -> MergeSummary:
        """Let time pass, merging on wake-ups and every ten seconds; all that changed."""
        all_of_it = MergeSummary()
        end = self.clock.monotonic() + seconds
        while True:
            self.woken.clear()
            _add(all_of_it, await self.lister.merge())
            rest = end - self.clock.monotonic()
            if rest <= 0:
                return all_of_it
            try:
                async with asyncio.timeout(min(rest, 10.0)):
                    await self.woken.wait()
            except TimeoutError:
                pass

    def known(self, name: str) -> Machine:
        """A machine of the book."""
        found = self.book.get(name)
        assert found is not None, f"{name} is not known"
        return found

    def states(self) -> dict[str, int]:
        """The state of every machine in the book."""
        return {machine.id: int(machine.state) for machine in self.book}


@asynccontextmanager
async def shard_of(
    *clouds: Cloud, disk: MemoryDisk | None = None, page: int = 20_000
) -> AsyncIterator[Shard]:
    """A shard that has begun to ask its clouds."""
    shard = Shard(*clouds, disk=disk, page=page)
    await shard.start()
    try:
        yield shard
    finally:
        await shard.stop()


def on_virtual_time(
    test: Callable[P, Coroutine[Any, Any, None]],
) -> Callable[P, None]:
    """Hours pass in no time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        virtual_loop(test.__name__).run(test(*args, **kwargs))

    return run


def _add(total: MergeSummary, part: MergeSummary) -> None:
    total.changes += part.changes
    total.losses += part.losses
    total.jumped += part.jumped
    total.removed += part.removed
    total.freed += part.freed
    total.delivered += part.delivered
    total.refused += part.refused
    total.merged |= part.merged
