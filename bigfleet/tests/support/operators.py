"""An operator at the other end of a session, and a shard's sessions with little around them.

`SessionStream` is a stream in memory: the test writes what the operator sends, and reads what it
receives.
`Desk` puts together what a shard has for its sessions: machines, needs, quarantine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from bigfleet.model import CapacityType, HostRef, Machine, MachineState, Stamp
from bigfleet.model.amounts.penalty import PenaltyBucket
from bigfleet.model.columns import Symbols
from bigfleet.shard.demand.ingest import Ingest
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.demand.quarantine import Quarantine
from bigfleet.shard.demand.rollups import RollUpIntake
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.node_observations import NodeObservations
from bigfleet.shard.operators.sessions import Sessions, TermAndEpoch
from bigfleet.wire.rollup_limits import RollUpLimits
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2
from clocks import HandClock

T = TypeVar("T")
PATIENCE = 20.0
"""Seconds after which a test gives up waiting."""


async def inline(function: Callable[[], T]) -> T:
    """Off the loop, as a simulation has it: on it, after a turn."""
    await asyncio.sleep(0)
    return function()


@dataclass
class Counted:
    """Metrics a test can look at."""

    events: list[tuple[str, int]] = field(default_factory=list)
    strangers: int = 0
    accepted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    held: dict[str, bool] = field(default_factory=dict)
    over: list[tuple[str, str]] = field(default_factory=list)
    ingested: int = 0

    def session_event(self, event: str, active: int) -> None:
        self.events.append((event, active))

    def session_identity_rejected(self) -> None:
        self.strangers += 1

    def rollup_accepted(self, cluster: str) -> None:
        self.accepted.append(cluster)

    def rollup_rejected(self, cluster: str) -> None:
        self.rejected.append(cluster)

    def rollup_over_limit(self, cluster: str, limit: str) -> None:
        self.over.append((cluster, limit))

    def rollup_quarantined(self, cluster: str, held: bool) -> None:
        self.held[cluster] = held

    def rollup_ingest(self, seconds: float) -> None:
        self.ingested += 1


class Desk:
    """A shard as far as its sessions see it."""

    def __init__(self, outbox_bound: int = 8192, limits: RollUpLimits | None = None) -> None:
        self.clock = HandClock()
        self.symbols = Symbols()
        self.book = Book(self.symbols, self.clock)
        self.observed = NodeObservations(self.book, self.clock)
        self.needs = NeedsTable(self.symbols, self.clock.now)
        self.metrics = Counted()
        self.rollups = RollUpIntake(
            self.needs,
            Quarantine(self.bound),
            self.clock,
            inline,
            self.metrics,
            Ingest(limits=limits),
        )
        self.woken: list[str] = []
        self.given: set[str] = set()
        self.sessions = Sessions(
            self.book,
            self.observed,
            self.rollups,
            self.clock,
            Random(7),
            self.metrics,
            lambda: TermAndEpoch(coordinator_term=3, epoch=9),
            outbox_bound,
            moment_seconds=0.0,
            pause_seconds=0.0,
            is_given_away=self.given.__contains__,
        )
        self.rollups.on_rollup.append(lambda cluster, _: self.woken.append(cluster))

    def bound(self, cluster: str) -> Mapping[str, float]:
        """What a cluster's machines offer."""
        total = 0.0
        for machine_id in self.book.bound(cluster):
            machine = self.book.get(machine_id)
            assert machine is not None
            total += machine.resources.get("cpu", 0) / 1000
        return {"cpu": total} if total else {}

    def call(self, identity: str | None = None) -> SessionStream:
        """An operator opens a stream."""
        line = SessionStream(identity)
        line.serving = asyncio.ensure_future(self.sessions.serve(line))
        # How it ended is looked at by those whom it concerns.
        line.serving.add_done_callback(lambda task: task.cancelled() or task.exception())
        return line

    async def greet(self, cluster: str = "c-1", version: str = "v1") -> SessionStream:
        """An operator opens a session and has its answer."""
        line = self.call()
        line.say(hello=hello(cluster, version))
        assert (await line.told()).ack.echo == "hello"
        return line


class SessionStream:
    """A stream in memory; the operator's end is the test."""

    def __init__(self, identity: str | None = None, window: int = 1_000_000) -> None:
        self.identity = identity
        self.serving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._up: asyncio.Queue[shard_pb2.OperatorMessage | Exception | None] = asyncio.Queue()
        self._down: asyncio.Queue[shard_pb2.ShardMessage] = asyncio.Queue()
        self._window = asyncio.Semaphore(window)

    # -- the shard's end -------------------------------------------------------------------------

    async def receive(self) -> shard_pb2.OperatorMessage | None:
        """The next frame of the operator."""
        got = await self._up.get()
        if isinstance(got, Exception):
            raise got
        return got

    async def send(self, message: shard_pb2.ShardMessage) -> None:
        """A frame to the operator; waits while it does not read."""
        await self._window.acquire()
        self._down.put_nowait(message)

    # -- the operator's end ----------------------------------------------------------------------

    def say(
        self,
        message: shard_pb2.OperatorMessage | None = None,
        *,
        hello: shard_pb2.Hello | None = None,
        rollup: capacity_pb2.ClusterCapacityNeeds | None = None,
        blob: shard_pb2.BootstrapBlobResponse | None = None,
        reclaimed: shard_pb2.ReclaimAck | None = None,
        seen: shard_pb2.NodeObservations | None = None,
    ) -> None:
        """Send one frame."""
        self._up.put_nowait(
            message
            or shard_pb2.OperatorMessage(
                hello=hello,
                rollup=rollup,
                bootstrap_response=blob,
                reclaim_ack=reclaimed,
                node_observations=seen,
            )
        )

    def close(self) -> None:
        """Say nothing more."""
        self._up.put_nowait(None)

    def fail(self, error: Exception) -> None:
        """The connection breaks."""
        self._up.put_nowait(error)

    async def told(self) -> shard_pb2.ShardMessage:
        """The next frame of the shard."""
        async with asyncio.timeout(PATIENCE):
            return await self._down.get()

    def heard(self) -> list[shard_pb2.ShardMessage]:
        """What has arrived and was not read."""
        return [self._down.get_nowait() for _ in range(self._down.qsize())]

    def reads(self, frames: int) -> None:
        """Make room for so many more frames."""
        for _ in range(frames):
            self._window.release()

    async def ended(self) -> None:
        """Wait for the end of the session; its error is raised."""
        async with asyncio.timeout(PATIENCE):
            await self.serving


async def turns(count: int = 20) -> None:
    """Let everything that can happen without time passing happen."""
    for _ in range(count):
        await asyncio.sleep(0)


def hello(cluster: str = "c-1", version: str = "v1") -> shard_pb2.Hello:
    """A Hello; without a version it is an operator that knows no additions."""
    return shard_pb2.Hello(
        cluster_id=cluster, protocol_version="v1alpha1", software_version=version
    )


def stamp(cluster: str, group: str = "") -> Stamp:
    """A stamp of some need of a cluster."""
    bucket = PenaltyBucket.UNSPECIFIED
    return Stamp(cluster, "shape", group, "print", 0, bucket, bucket, 1)


def machine(
    machine_id: str,
    state: MachineState = MachineState.CONFIGURED,
    cluster: str = "",
    stamped: str = "",
    last_error: str = "",
    labels: Mapping[str, str] | None = None,
) -> Machine:
    """A machine with four cores."""
    hosted = state not in (MachineState.SPECULATIVE, MachineState.CREATING)
    return Machine(
        machine_id,
        state,
        host=HostRef("fake", f"i-{machine_id}") if hosted else None,
        provider="fake",
        cluster=cluster,
        instance_type="standard-4",
        zone="zone-a",
        capacity_type=CapacityType.ON_DEMAND,
        labels={"pool": "a"} if labels is None else labels,
        resources={"cpu": 4000, "memory": 16 * 2**30 * 1000},
        stamp=stamp(stamped) if stamped else None,
        last_error=last_error,
    )
