"""The production coordinator on the simulation's store, and the way of shards' reports to it.

One coordinator at a time, in several lives: each leads with a higher term, and one that stood still
while another began finds that it leads no more. Reports travel like calls to providers do: they get
lost on the way there or back, arrive late, or twice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from bigfleet.coordinator.errors import CoordinatorError, NotLeaderError
from bigfleet.coordinator.rebalance import FleetRebalancer
from bigfleet.coordinator.server.coordinator import Coordinator
from bigfleet.coordinator.server.coordinator import CoordinatorEnvironment as Around
from bigfleet.coordinator.state import Command, Move, RefusalError, state_of
from bigfleet.coordinator.store.interface import StoredRow
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.shard.peers.errors import ReportError
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from sim.network import NOWHERE
from sim.ports import SimClock, SimDisk, SimOffload
from sim.process import Process
from sim.store import Shelf, SimStore

if TYPE_CHECKING:
    from sim.world import World

NAME: Final = "coordinator"
_Answer = asyncio.Future[pb.ReportAck]


class CoordinatorHost:
    """The coordinator, in all its lives."""

    def __init__(self, world: World) -> None:
        self.clock = SimClock()
        self.shelf = Shelf()
        self.lives = 0
        self.process = Process(f"{NAME}.0")
        self._world = world
        self._rng = world.rng(NAME)
        self._coordinator: Coordinator | None = None
        self._is_kept_down = False

    # -- living and dying ------------------------------------------------------------------------

    def start(self) -> None:
        """Another life, with nothing but the store."""
        self._is_kept_down = False
        self.lives += 1
        self.process = process = Process(f"{NAME}.{self.lives}")
        self._world.trace.note(process.name, "starts")
        process.at_death(lambda: self._died(process))
        self._coordinator = coordinator = self._made(process)
        process.spawn(coordinator.run(), "run")

    def _made(self, process: Process) -> Coordinator:
        metrics = CoordinatorMetrics(self.clock.now, version="0")
        rng = self._world.rng(process.name)
        offload = SimOffload(process, SimDisk(rng), rng, seconds=0.02)
        store = SimStore(self.shelf, rng)
        rebalancer = FleetRebalancer(offload, metrics)
        return Coordinator(NAME, NAME, Around(store, self.clock, metrics, rebalancer))

    def _died(self, process: Process) -> None:
        self._world.trace.note(process.name, "dies")
        if process is self.process and not self._is_kept_down:
            self._world.later(self._rng.choice((0.1, 1.0, 10.0)), self._restart)

    def _restart(self) -> None:
        if not self.process.alive and not self._is_kept_down:
            self.start()

    def go_away(self) -> None:
        """Die, and stay so until it is started."""
        self._is_kept_down = True
        self.process.crash()

    def replace(self) -> Process:
        """It stands still and another life leads; the one that stands still."""
        old = self.process
        old.pause()
        self.start()
        return old

    def peace(self) -> None:
        """It is up, and its store works."""
        self.shelf.is_away = False
        if not self.process.alive:
            self.start()

    # -- asking it -------------------------------------------------------------------------------

    async def apply(self, *commands: Command) -> None:
        """What an administrator wants, once a replica leads."""
        while self._coordinator is None or not self._coordinator.election.is_leader:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        for command in commands:
            await self._coordinator.apply(command)

    def moves(self) -> list[Move]:
        """All moves it knows; none while no replica leads."""
        coordinator = self._coordinator
        if coordinator is None or not self.process.alive or not coordinator.election.is_leader:
            return []
        return list(coordinator.lead().state.moves.values())

    def stored_moves(self) -> list[Move]:
        """All moves of its store, the leader."""
        rows = [StoredRow(key.table, key.key, value) for key, value in self.shelf.rows.items()]
        return list(state_of(rows).moves.values())

    def clusters(self) -> dict[str, str]:
        """Which cluster is bound to which shard, in its store."""
        rows = [StoredRow(key.table, key.key, value) for key, value in self.shelf.rows.items()]
        return {name: bound.shard for name, bound in state_of(rows).clusters.items()}

    async def report(self, encoded: bytes) -> pb.ReportAck | ReportError:
        """A report that arrived, and what is answered."""
        assert self._coordinator is not None
        try:
            answer = await self._coordinator.report(pb.ShardReport.FromString(encoded))
        except NotLeaderError as error:
            return ReportError("FAILED_PRECONDITION", str(error), error.leader)
        except (CoordinatorError, RefusalError) as error:
            return ReportError("UNAVAILABLE", str(error))
        return answer.to_proto()


class SimCaller:
    """`bigfleet.shard.peers.coordinator_caller.Caller` of one life of a shard."""

    def __init__(self, host: str, coordinator: CoordinatorHost, world: World) -> None:
        self._host, self._coordinator = host, coordinator
        self._net = world.network

    async def report(self, address: str, report: pb.ShardReport, seconds: float) -> pb.ReportAck:
        """The answer, if one comes in time."""
        loop, net = asyncio.get_running_loop(), self._net
        answer: _Answer = loop.create_future()
        late = ReportError("DEADLINE_EXCEEDED", f"no answer within {seconds:g} s")
        deadline = loop.call_later(seconds, _settle, answer, late, context=NOWHERE)
        encoded = report.SerializeToString()
        if net.rng.random() >= net.weather.lost_request:
            loop.call_later(net.delay(), self._arrive, encoded, answer, context=NOWHERE)
        if net.rng.random() < net.weather.duplicate:
            unknown: _Answer = loop.create_future()
            loop.call_later(net.delay() * 3, self._arrive, encoded, unknown, context=NOWHERE)
        try:
            return await answer
        finally:
            deadline.cancel()

    async def close(self) -> None:
        """Nothing is open."""

    def _arrive(self, encoded: bytes, answer: _Answer) -> None:
        net, process = self._net, self._coordinator.process
        if net.is_cut(self._host, NAME):
            return
        if not process.alive:
            refused = ReportError("UNAVAILABLE", "connection refused")
            loop = asyncio.get_running_loop()
            loop.call_later(net.delay(), _settle, answer, refused, context=NOWHERE)
            return
        process.spawn(self._serve(encoded, answer), f"report-{self._host}")

    async def _serve(self, encoded: bytes, answer: _Answer) -> None:
        result, net = await self._coordinator.report(encoded), self._net
        if net.rng.random() >= net.weather.lost_answer:
            loop = asyncio.get_running_loop()
            loop.call_later(net.delay(), _settle, answer, result, context=NOWHERE)


def _settle(answer: _Answer, result: pb.ReportAck | ReportError) -> None:
    if answer.done():
        return
    if isinstance(result, ReportError):
        answer.set_exception(result)
        # The caller may have died; no party is to blame for not looking.
        answer.exception()
    else:
        answer.set_result(result)
