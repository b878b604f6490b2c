"""200 shards, 20,000 clusters and 100,000 domains around one coordinator, all through gRPC.

Every shard reports every ten seconds; a tenth of them lack a hundred things each, so the rebalancer
plans all the time. At the end a domain is assigned, after which every shard is sent everything
again; those answers have megabytes and no bar.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_lab.bench.rows import BarMeasurement, expect
from bigfleet_lab.bench_coordinator.filled import RACK, Size, crowd_state, fill
from bigfleet_lab.bench_coordinator.processes import Coordinator, coordinator
from bigfleet_lab.bench_shard.processes import Child

SIZE: Final = Size(shards=200, clusters=20_000, domains=100_000)
MOST_MEAN_MS: Final = 5.0
_INTERVAL: Final = 10.0
_SECONDS: Final = 30.0
_SAMPLE_SECONDS: Final = 0.2
_START_SECONDS: Final = 60.0
_SWEEP: Final = "rebalance_sweep_duration_seconds"


@dataclass
class Crowd:
    """What a run found."""

    report_ms: list[float] = field(default_factory=list)
    assigned_ms: list[float] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)
    memory: int = 0
    peak: int = 0
    planned: float = 0.0


class Rounds:
    """How long each round took, from a histogram that is looked at often enough."""

    def __init__(self, watched: Coordinator) -> None:
        self._watched = watched
        self._sum, self._count = self._look()
        self.seconds: list[float] = []

    def sample(self) -> None:
        """See whether there was another one."""
        total, count = self._look()
        if count > self._count:
            self.seconds += [(total - self._sum) / (count - self._count)] * int(count - self._count)
        self._sum, self._count = total, count

    def _look(self) -> tuple[float, float]:
        found = self._watched.metrics()
        return found[f"{_SWEEP}_sum"], found[f"{_SWEEP}_count"]


@lru_cache(maxsize=1)
def crowd() -> Crowd:
    """Run it once."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bigfleet-bench-")))
        asyncio.run(fill(folder / "store", crowd_state(SIZE)))
        leader = stack.enter_context(coordinator(folder / "store"))
        shards = _shards(leader.address, folder)
        stack.callback(shards.kill)
        shards.wait_ready()
        _wait_until_known(shards)
        return _measure(leader, shards)


def _shards(address: str, folder: Path) -> Child:
    module = "bigfleet_lab.bench_coordinator.reporting"
    size = [str(each) for each in (SIZE.shards, SIZE.clusters, SIZE.domains)]
    return Child(
        [sys.executable, "-m", module, address, *size, str(_INTERVAL)], folder / "shards.log"
    )


def _wait_until_known(shards: Child) -> None:
    """Until every shard has reported and holds its assignments."""
    deadline = time.monotonic() + _START_SECONDS
    while (said := shards.ask())["up_to_date"] < SIZE.shards:
        expect(time.monotonic() < deadline, f"only {said['up_to_date']} shards were answered")
        time.sleep(_SAMPLE_SECONDS)


def _measure(leader: Coordinator, shards: Child) -> Crowd:
    found, rounds = Crowd(), Rounds(leader)
    said = _watch(_SECONDS, shards, rounds)
    found.report_ms = said["report_ms"]
    asyncio.run(_assign(leader.address))
    last = _watch(1.2 * _INTERVAL, shards, rounds)
    found.assigned_ms = last["assigned_ms"]
    found.rounds = rounds.seconds
    found.memory, found.peak = leader.memory()
    after = leader.metrics()
    found.planned = sum(
        value
        for name, value in after.items()
        if name.startswith("rebalance_moves_total") and 'outcome="planned"' in name
    )
    expect(not last["refused"], f"{last['refused']} reports were refused")
    expect(not said["assigned_ms"], "assignments were sent although nothing had changed")
    expect(len(found.assigned_ms) == SIZE.shards, "not every shard heard of a new domain once")
    expect(after['state_entries{table="domains"}'] == SIZE.domains + 1, "domains are missing")
    expect(after['state_entries{table="clusters"}'] == SIZE.clusters, "clusters are missing")
    wanted = _SECONDS / _INTERVAL * SIZE.shards * 0.9
    answered = len(found.report_ms)
    expect(answered >= wanted, f"{answered} reports were answered, {wanted:.0f} expected")
    expect(bool(found.rounds), "the rebalancer had no round")
    expect(found.planned > 0, "the rebalancer planned nothing")
    return found


def _watch(seconds: float, shards: Child, rounds: Rounds) -> dict[str, Any]:
    """Let time pass; what shards measured meanwhile."""
    shards.ask()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(_SAMPLE_SECONDS)
        rounds.sample()
    said: dict[str, Any] = shards.ask()
    return said


async def _assign(address: str) -> None:
    async with open_channel(address, None) as channel:
        stub: rpc.CoordinatorAsyncStub = rpc.CoordinatorStub(channel)
        domain = pb.AssignDomainRequest(topology_key=RACK, topology_value="new", shard_id="s-000")
        await stub.AssignDomain(domain, timeout=10.0)


def reports() -> BarMeasurement:
    """How soon a report is answered, as the shard sees it."""
    found = crowd()
    return BarMeasurement(found.report_ms, most_mean=MOST_MEAN_MS)


def rounds() -> BarMeasurement:
    """The longest round of the rebalancer."""
    return BarMeasurement(value=round(max(crowd().rounds), 3))


def memory() -> BarMeasurement:
    """The most it ever held, the first answers to everybody included."""
    return BarMeasurement(value=crowd().peak)
