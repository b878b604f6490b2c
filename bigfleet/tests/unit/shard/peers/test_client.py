"""When a shard reports and to whom, on virtual time against scripted coordinators."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from random import Random
from typing import TypeVar

import pytest

from bigfleet.shard.peers.client import CoordinatorClient
from bigfleet.shard.peers.errors import CoordinationError, ReportError
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Tally
from sim.loop import virtual_loop

T = TypeVar("T")
NOT_LEADER = "FAILED_PRECONDITION"


class Coordinators:
    """Each address answers as it was told last; all calls are written down."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, str, pb.ShardReport]] = []
        self.answers: dict[str, pb.ReportAck | ReportError] = {}
        self.closed = False

    async def report(self, address: str, report: pb.ShardReport, seconds: float) -> pb.ReportAck:
        assert seconds == 5.0
        copy = pb.ShardReport()
        copy.CopyFrom(report)
        self.calls.append((asyncio.get_running_loop().time(), address, copy))
        answer = self.answers.get(address, pb.ReportAck(acknowledged=True))
        if isinstance(answer, ReportError):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True

    @property
    def times(self) -> list[float]:
        return [round(at, 3) for at, _, _ in self.calls]

    @property
    def addresses(self) -> list[str]:
        return [address for _, address, _ in self.calls]

    def acks(self, call: int) -> list[str]:
        return [ack.instruction_id for ack in self.calls[call][2].instruction_acks]


class Reports:
    def build(self, revision: int, acks: Iterable[pb.InstructAck]) -> pb.ShardReport:
        return pb.ShardReport(shard_id="s-1", assignments_revision=revision, instruction_acks=acks)


class Obedient:
    """Accepts every instruction; one it knows already is a duplicate."""

    def __init__(self) -> None:
        self.revision = 3
        self.done: set[str] = set()
        self.fails = False

    async def take(self, answer: pb.ReportAck) -> list[pb.InstructAck]:
        if self.fails:
            raise OSError("no room left")
        acks = []
        for one in answer.instructions:
            name = one.instruction_id
            reason = "duplicate-redelivery" if name in self.done else ""
            self.done.add(name)
            acks.append(pb.InstructAck(instruction_id=name, outcome=1, reason=reason))  # type: ignore[arg-type]
        return acks


class World:
    def __init__(self, addresses: list[str]) -> None:
        self.coordinators, self.obedient, self.tally = Coordinators(), Obedient(), Tally()
        self.client = CoordinatorClient(
            addresses, self.coordinators, Reports(), self.obedient, self.tally, Random(1)
        )


def play(scene: Callable[[World], Awaitable[T]], addresses: str = "a") -> T:
    async def run() -> T:
        world = World(addresses.split())
        running = asyncio.create_task(world.client.run())
        try:
            return await scene(world)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            assert world.coordinators.closed

    return virtual_loop(1).run(run())


def test_a_report_goes_out_at_once_and_every_ten_seconds() -> None:
    async def scene(world: World) -> None:
        await asyncio.sleep(35)
        assert world.coordinators.times == [0, 10, 20, 30]
        reports = [report for _, _, report in world.coordinators.calls]
        assert [report.cycle for report in reports] == [1, 2, 3, 4]
        assert reports[0].assignments_revision == 3
        assert world.tally.reports == ["success"] * 4

    play(scene)


def test_starting_and_stopping_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        await asyncio.sleep(1)

    with caplog.at_level(logging.INFO):
        play(scene, "a b")
    words = [record.message for record in caplog.records]
    assert words == ["coord client started", "coord client stopped"]
    assert vars(caplog.records[0])["address"] == "a,b"


def test_an_acknowledgement_does_not_wait_for_the_beat() -> None:
    async def scene(world: World) -> None:
        told = pb.ReportAck(acknowledged=True)
        told.instructions.add(instruction_id="i-1")
        world.coordinators.answers["a"] = told
        await asyncio.sleep(0.1)
        world.coordinators.answers["a"] = pb.ReportAck(acknowledged=True)
        await asyncio.sleep(5)
        assert world.coordinators.times == [0, 0.2]
        assert world.coordinators.acks(1) == ["i-1"]
        assert len(world.client._acks) == 0

    play(scene)


def test_an_instruction_that_keeps_coming_does_not_make_reports_spin() -> None:
    async def scene(world: World) -> None:
        told = pb.ReportAck(acknowledged=True)
        told.instructions.add(instruction_id="i-1")
        world.coordinators.answers["a"] = told
        await asyncio.sleep(60)
        assert len(world.coordinators.calls) <= 8

    play(scene)


def test_an_urgent_matter_is_reported_at_once() -> None:
    async def scene(world: World) -> None:
        await asyncio.sleep(3)
        world.client.wake()
        await asyncio.sleep(1)
        assert world.coordinators.times == [0, 3]

    play(scene)


def test_the_leader_named_by_another_is_followed_and_remembered() -> None:
    async def scene(world: World) -> None:
        world.coordinators.answers["a"] = ReportError(NOT_LEADER, "coordinator: not leader", "c")
        await asyncio.sleep(15)
        assert world.coordinators.addresses == ["a", "c", "c"]
        assert world.tally.reports == ["not_leader", "success", "success"]

    play(scene, "a b")


def test_at_most_three_hops_are_made_and_none_twice() -> None:
    async def scene(world: World) -> None:
        for one, other in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")):
            world.coordinators.answers[one] = ReportError(NOT_LEADER, "not leader", other)
        await asyncio.sleep(0.01)
        assert world.coordinators.addresses == ["a", "b", "c", "d"]
        world.coordinators.answers["a"] = ReportError(NOT_LEADER, "not leader", "a")
        world.coordinators.calls.clear()
        await asyncio.sleep(1)
        assert set(world.coordinators.addresses) == {"a"}, "who names itself is not asked again"

    play(scene)


def test_without_a_hint_or_an_answer_the_other_addresses_are_tried() -> None:
    async def scene(world: World) -> None:
        world.coordinators.answers["a"] = ReportError(NOT_LEADER, "not leader")
        world.coordinators.answers["b"] = ReportError("UNAVAILABLE", "connection refused")
        await asyncio.sleep(11)
        assert world.coordinators.addresses == ["a", "b", "c", "c"]
        assert world.tally.reports == ["not_leader", "error", "success", "success"]

    play(scene, "a b c")


def test_without_an_answer_it_waits_longer_and_longer_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(world: World) -> None:
        world.coordinators.answers["a"] = ReportError("UNAVAILABLE", "connection refused")
        await asyncio.sleep(60)
        times = world.coordinators.times
        gaps = [later - earlier for earlier, later in pairwise(times)]
        bounds = [0.5, 1, 2, 4, 8, 10, 10, 10]
        assert all(b / 2 <= gap <= b for gap, b in zip(gaps, bounds, strict=False))
        world.coordinators.answers.clear()
        await asyncio.sleep(10)
        world.coordinators.answers["a"] = ReportError("UNAVAILABLE", "gone again")
        before = len(world.coordinators.calls)
        await asyncio.sleep(12)
        assert len(world.coordinators.calls) - before >= 3, "the pause started over"

    with caplog.at_level(logging.WARNING):
        play(scene)
    assert caplog.records[0].message == "ReportShard failed"
    assert "connection refused" in vars(caplog.records[0])["error"]


def test_acknowledgements_of_a_failed_report_come_first_in_the_next() -> None:
    async def scene(world: World) -> None:
        told = pb.ReportAck(acknowledged=True)
        told.instructions.add(instruction_id="i-1")
        world.coordinators.answers["a"] = told
        await asyncio.sleep(0.1)
        world.coordinators.answers["a"] = ReportError("DEADLINE_EXCEEDED", "")
        await asyncio.sleep(0.2)
        assert len(world.client._acks) == 1
        world.coordinators.answers["a"] = pb.ReportAck(acknowledged=False)
        await asyncio.sleep(0.5)
        assert len(world.client._acks) == 1
        told = pb.ReportAck(acknowledged=True)
        told.instructions.add(instruction_id="i-2")
        world.coordinators.answers["a"] = told
        await asyncio.sleep(3)
        delivered = [world.coordinators.acks(n) for n in range(len(world.coordinators.calls))]
        assert delivered[1:4] == [["i-1"], ["i-1"], ["i-1"]]
        assert ["i-2"] in delivered

    play(scene)


def test_a_discarded_report_counts_as_failed_and_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(world: World) -> None:
        world.coordinators.answers["a"] = pb.ReportAck(acknowledged=False)
        await asyncio.sleep(0.1)
        assert world.tally.reports == ["error"]

    with caplog.at_level(logging.WARNING):
        play(scene)
    assert "remove-shard" in vars(caplog.records[0])["error"]


def test_an_answer_that_cannot_be_carried_out_does_not_end_the_reports() -> None:
    async def scene(world: World) -> None:
        world.obedient.fails = True
        await asyncio.sleep(25)
        assert world.coordinators.times == [0, 10, 20]

    play(scene)


def test_a_client_without_an_address_is_a_mistake() -> None:
    with pytest.raises(CoordinationError, match="leave the client out"):
        World([])
