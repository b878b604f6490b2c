"""Three coordinators as processes on real etcd members, and clients that write without a pause.

Every replica is behind wires of its own: one to each member of etcd, one at its door, where clients
dial it. So a replica can be killed, paused and cut off, and what clients were told meanwhile can be
held against what is there afterwards. A client never knows who leads; it just asks.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinator_calls import Said, call
from etcd_members import Cluster, free_ports
from stalls import Stalls
from tcp_proxy import Proxy

KEY = "rack"
SHARD = "s-1"
PATIENCE_SECONDS = 1.0
"""A client's, for one write."""
PAUSE_SECONDS = 0.02
"""Of a client between two writes."""
WAIT_SECONDS = 60.0
_REFUSED = "FAILED_PRECONDITION"


@dataclass
class Replica:
    """One `bigfleet coordinator`."""

    name: str
    folder: Path
    door: Proxy
    wires: Sequence[Proxy]
    listen: int
    http: int
    store: str
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A new process; it may be the second one."""
        command = [
            sys.executable, "-m", "bigfleet.cli.main", "coordinator", "--id", self.name,
            "--listen", self.address, "--advertise-addr", self.door.address,
            "--metrics-addr", f"127.0.0.1:{self.http}", "--store", self.store,
        ]  # fmt: skip
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def address(self) -> str:
        """Its own port, behind the door."""
        return f"127.0.0.1:{self.listen}"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def cut(self) -> None:
        """Neither etcd nor clients reach it, nor it them."""
        for wire in (*self.wires, self.door):
            wire.cut()

    def repair(self) -> None:
        """They do again."""
        for wire in (*self.wires, self.door):
            wire.repair()

    def is_ready(self) -> bool:
        """Whether it knows a leader."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/readyz", timeout=2) as said:
                return bool(said.status == 200)
        except OSError:
            return False

    def said(self) -> str:
        """The end of its log."""
        return (self.folder / f"{self.name}.log").read_text(errors="replace")[-2_000:]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A write that a replica took. Times are monotonic."""

    value: str
    replica: str
    begun: float
    ended: float


@dataclass
class Ledger:
    """What clients were told."""

    taken: list[Acknowledged] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    """Values whose write got no answer: they may be there or not."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_value(self) -> str:
        """One that no client wrote before."""
        return f"v{next(self._numbers)}"

    def take(self, value: str, replica: str, begun: float, said: Said) -> None:
        """How a write ended."""
        if said.code == "OK":
            self.taken.append(Acknowledged(value, replica, begun, time.monotonic()))
        elif said.code != _REFUSED:
            self.unknown.add(value)


class Client:
    """Writes to one replica, whether it leads or not, one write after the other."""

    def __init__(self, replica: Replica, ledger: Ledger) -> None:
        self._replica, self._ledger = replica, ledger

    async def run(self) -> None:
        """Until cancelled."""
        channel = open_channel(self._replica.door.address, None)
        try:
            while True:
                value, begun = self._ledger.new_value(), time.monotonic()
                said = await call(channel, "AssignDomain", _assign(value), PATIENCE_SECONDS)
                self._ledger.take(value, self._replica.name, begun, said)
                if said.code == "UNAVAILABLE":
                    # A new channel dials at once; an old one would wait longer each time.
                    await channel.close()
                    channel = open_channel(self._replica.door.address, None)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await channel.close()


class Replicas:
    """Three of them, their clients, and what they said."""

    def __init__(self, replicas: Sequence[Replica], cluster: Cluster) -> None:
        self.replicas = replicas
        self.cluster = cluster
        self.ledger = Ledger()
        self.stalls = Stalls()

    async def ready(self) -> None:
        """Until every replica knows a leader."""
        for replica in self.replicas:
            deadline = time.monotonic() + WAIT_SECONDS
            while not await asyncio.to_thread(replica.is_ready):
                assert time.monotonic() < deadline, replica.said()
                await asyncio.sleep(0.05)

    async def leading(self) -> Replica:
        """The replica that takes writes now."""
        served = await self.serves(time.monotonic())
        return next(replica for replica in self.replicas if replica.name == served.replica)

    async def serves(self, since: float, other_than: Replica | None = None) -> Acknowledged:
        """The first write taken that was begun after a moment, by another replica."""
        without = "" if other_than is None else other_than.name
        seen, deadline = len(self.ledger.taken), time.monotonic() + WAIT_SECONDS
        while True:
            while seen < len(self.ledger.taken):
                one = self.ledger.taken[seen]
                seen += 1
                if one.begun >= since and one.replica != without:
                    return one
            assert time.monotonic() < deadline, "\n".join(one.said() for one in self.replicas)
            await asyncio.sleep(0.005)

    async def register(self, shard: str) -> None:
        """A shard that domains can be given to."""
        report = pb.ShardReport(
            shard_id=shard, shard_epoch=1, cycle=1, shard_address=f"{shard}:7780"
        )
        deadline = time.monotonic() + WAIT_SECONDS
        for replica in itertools.cycle(self.replicas):
            async with open_channel(replica.door.address, None) as channel:
                if (await call(channel, "ReportShard", report)).code == "OK":
                    return
            assert time.monotonic() < deadline, replica.said()
            await asyncio.sleep(0.05)

    async def assigned(self) -> set[str]:
        """Every value that is there, as the leader says."""
        deadline = time.monotonic() + WAIT_SECONDS
        for replica in itertools.cycle(self.replicas):
            async with open_channel(replica.door.address, None) as channel:
                request = pb.ListDomainAssignmentsRequest()
                said = await call(channel, "ListDomainAssignments", request, 10.0)
            if said.code == "OK":
                (answer,) = said.answers
                assert isinstance(answer, pb.ListDomainAssignmentsResponse)
                return {one.topology_value for one in answer.assignments if one.topology_key == KEY}
            assert time.monotonic() < deadline, f"{said}"
        raise AssertionError("there is no replica")

    async def check(self) -> None:
        """Everything acknowledged is there, and nothing that was refused."""
        acknowledged = {one.value for one in self.ledger.taken}
        found = await self.assigned()
        assert acknowledged <= found, f"lost: {sorted(acknowledged - found)[:10]}"
        more = found - {one.value for one in self.ledger.taken} - self.ledger.unknown
        # What was being written while the list was made has no answer yet.
        assert len(more) <= len(self.replicas), f"never acknowledged: {sorted(more)[:10]}"


def _assign(value: str) -> pb.AssignDomainRequest:
    return pb.AssignDomainRequest(topology_key=KEY, topology_value=value, shard_id=SHARD)


async def write(channel: grpc.aio.Channel, value: str, seconds: float) -> Said:
    """One write of a test's own."""
    return await call(channel, "AssignDomain", _assign(value), seconds)


@asynccontextmanager
async def three_replicas(cluster: Cluster, prefix: str, folder: Path) -> AsyncIterator[Replicas]:
    """Three coordinators that serve, with clients that write."""
    async with AsyncExitStack() as stack:
        made = []
        for name, (listen, http) in zip(("x", "y", "z"), free_ports(3, 2), strict=True):
            door = await stack.enter_async_context(Proxy(f"127.0.0.1:{listen}"))
            wires = [await stack.enter_async_context(Proxy(each)) for each in cluster.endpoints]
            store = cluster.address(prefix, [wire.address for wire in wires])
            replica = Replica(name, folder, door, wires, listen, http, store)
            stack.callback(replica.kill)
            replica.start()
            made.append(replica)
        fleet = Replicas(made, cluster)
        await fleet.ready()
        await fleet.register(SHARD)
        work = [Client(replica, fleet.ledger).run() for replica in made]
        tasks = [asyncio.ensure_future(each) for each in (*work, fleet.stalls.run())]
        try:
            await fleet.leading()
            yield fleet
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
