"""When a shard reports and to whom.

Every few seconds, and at once when an acknowledgement is waiting or a part of the shard says it is
urgent. A coordinator that does not lead names the one that does, and is followed at most three
times; where no coordinator answers, the other addresses are tried and then a pause that grows.
Acknowledgements wait in a queue until a report with them was taken. No coordinator reachable is an
ordinary state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from bigfleet.shard.peers.coordinator_caller import Caller
from bigfleet.shard.peers.errors import CoordinationError, ReportError
from bigfleet.shard.peers.instructions import DUPLICATE
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

MOST_HOPS: Final = 3
_FIRST_PAUSE: Final = 0.5
_MOST_ACKS: Final = 10_000
_log = logging.getLogger(__name__)


class Building(Protocol):
    """Makes reports."""

    def build(self, revision: int, acks: Iterable[pb.InstructAck]) -> pb.ShardReport:
        """A report without its number."""


class InstructionReceiver(Protocol):
    """Does what answers say."""

    @property
    def revision(self) -> int:
        """Of the assignments held."""

    async def take(self, answer: pb.ReportAck) -> list[pb.InstructAck]:
        """What became of each instruction."""


class ReportMetrics(Protocol):
    """What is counted."""

    def coordinator_report(self, outcome: str) -> None:
        """success, not_leader or error."""


@dataclass(frozen=True, slots=True)
class ReportIntervals:
    """Seconds."""

    interval: float = 10.0
    deadline: float = 5.0
    least_gap: float = 0.2
    """Between two reports, however urgent."""


class CoordinatorClient:
    """One shard's conversation with its coordinators."""

    def __init__(
        self, addresses: Sequence[str], caller: Caller, reports: Building,
        instructions: InstructionReceiver, counts: ReportMetrics, rng: Random,
        rhythm: ReportIntervals | None = None,
    ) -> None:  # fmt: skip
        if not addresses:
            raise CoordinationError("no coordinator's address is given: leave the client out")
        self._addresses = tuple(addresses)
        self._caller, self._reports, self._instructions = caller, reports, instructions
        self._counts, self._rng, self._rhythm = counts, rng, rhythm or ReportIntervals()
        self._preferred = self._addresses[0]
        self._acks: dict[str, pb.InstructAck] = {}
        self._urgent = asyncio.Event()
        self._pause = _FIRST_PAUSE
        self._number = 0

    def wake(self) -> None:
        """Report as soon as may be."""
        self._urgent.set()

    async def run(self) -> None:
        """Report until cancelled."""
        _log.info("coord client started", extra={"address": ",".join(self._addresses)})
        try:
            while True:
                self._urgent.clear()
                if await self.report():
                    self._pause = _FIRST_PAUSE
                    await self._rest()
                else:
                    await self._back_off()
        finally:
            _log.info("coord client stopped", extra={"address": ",".join(self._addresses)})
            await self._caller.close()

    async def report(self) -> bool:
        """One report to the leader; whether it was taken."""
        acks, self._acks = self._acks, {}
        try:
            report = self._reports.build(self._instructions.revision, acks.values())
            answer = await self._call(report)
        except BaseException as error:
            self._put_back(acks)
            if not isinstance(error, ReportError):
                raise
            _log.warning(
                "ReportShard failed", extra={"address": self._preferred, "error": str(error)}
            )
            self._rotate()
            return False
        if not answer.acknowledged:
            self._put_back(acks)
            self._counts.coordinator_report("error")
            _log.warning(
                "ReportShard failed",
                extra={
                    "address": self._preferred,
                    "error": "the report was discarded: the coordinator has heard a newer life of "
                    "this shard; if its epoch file was lost, use bigfleetctl remove-shard",
                },
            )
            return False
        self._counts.coordinator_report("success")
        await self._obey(answer)
        return True

    async def _obey(self, answer: pb.ReportAck) -> None:
        try:
            acks = await self._instructions.take(answer)
        except Exception as error:  # noqa: BLE001 - the next answer brings it all again
            _log.warning(
                "the coordinator's answer could not be carried out: %s",
                error,
                extra={"address": self._preferred},
            )
            return
        for ack in acks:
            # What really happened is told before that it was asked for again.
            if ack.instruction_id not in self._acks and len(self._acks) < _MOST_ACKS:
                self._acks[ack.instruction_id] = ack
        if any(ack.reason != DUPLICATE for ack in acks):
            self.wake()

    async def _call(self, report: pb.ShardReport) -> pb.ReportAck:
        """The answer of the leader: its own address first, then every other, following hints."""
        others = [address for address in self._addresses if address != self._preferred]
        waiting, tried, hops = [self._preferred, *others], set[str](), 0
        last = ReportError("UNAVAILABLE", "no coordinator was asked")
        while waiting:
            address = waiting.pop(0)
            tried.add(address)
            self._number += 1
            report.cycle = self._number
            try:
                answer = await self._caller.report(address, report, self._rhythm.deadline)
            except ReportError as error:
                last = error
                self._counts.coordinator_report("not_leader" if error.not_leader else "error")
                leader = error.leader if error.not_leader else ""
                if leader and leader not in tried and hops < MOST_HOPS:
                    hops += 1
                    waiting = [leader, *(one for one in waiting if one != leader)]
                continue
            self._preferred = address
            return answer
        raise last

    def _put_back(self, acks: dict[str, pb.InstructAck]) -> None:
        self._acks = {**acks, **self._acks}

    def _rotate(self) -> None:
        """Begin with another address next time."""
        known = self._preferred in self._addresses
        at = self._addresses.index(self._preferred) + 1 if known else 0
        self._preferred = self._addresses[at % len(self._addresses)]

    async def _rest(self) -> None:
        await asyncio.sleep(self._rhythm.least_gap)
        rest = self._rhythm.interval - self._rhythm.least_gap
        try:
            async with asyncio.timeout(rest):
                await self._urgent.wait()
        except TimeoutError:
            pass

    async def _back_off(self) -> None:
        pause = self._pause
        self._pause = min(self._rhythm.interval, 2 * pause)
        await asyncio.sleep(pause * self._rng.uniform(0.5, 1.0))
