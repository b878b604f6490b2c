"""The leader's loop: reports come in, moves are written, shards are told what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bigfleet.coordinator.rebalance import FleetRebalancer
from bigfleet.coordinator.state import Move, MovePhase, RemoveShard, SetQuota
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from coordinating import inline
from coordinators import Fleet, leading, until
from memory_store import MemoryStore

DONOR, RECIPIENT = pb.HeldTransfer.ROLE_DONOR, pb.HeldTransfer.ROLE_RECIPIENT


class Moving(Fleet):
    """A coordinator that moves machines, and shards that say what a test wants them to."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.moving = FleetRebalancer(inline, CoordinatorMetrics(lambda: 0, version="1"))
        super().__init__(store, rebalancer=self.moving)
        self.moving._counts = self.metrics

    @property
    def moves(self) -> list[Move]:
        return list(self.moving.moves(self.coordinator.lead()))

    def phase(self) -> MovePhase:
        """Of the only move there is."""
        (move,) = self.moves
        return move.phase

    async def hear(
        self,
        shard: str,
        *acks: pb.InstructAck,
        held: Sequence[tuple[str, pb.HeldTransfer.Role.ValueType, str]] = (),
        idle: int = 0,
        slots: int = 0,
        lacks: int = 0,
    ) -> dict[str, pb.CoordinatorInstruction]:
        """A shard reports; what it is told, by id. Then the leader has time to think."""
        summary = pb.ShardSummary(
            free_by_class=[
                pb.FreeClass(
                    instance_type="std", zone="z", provider="p", region="r",
                    idle=idle, speculative=slots,
                    allocatable=provider.Resources(resources={"cpu": "4"}),
                )
            ]
        )  # fmt: skip
        lack = pb.Shortfall(
            deficit=provider.Resources(resources={"cpu": str(lacks)}),
            age_cycles=6,
            profile_fingerprint="f",
        )
        answer = await self.report(
            shard,
            summary=summary,
            shortfalls=[lack] if lacks else [],
            instruction_acks=acks,
            transfers=[
                pb.HeldTransfer(move_id=move, role=role, machine_ids=[machine])
                for move, role, machine in held
            ],
        )
        self.clock.advance(2)
        await self.think()
        return {one.instruction_id: one for one in answer.instructions}

    async def think(self) -> None:
        for _ in range(50):
            await until(lambda: True)
        await self.moving.look(self.coordinator.lead())


def ack(name: str, *machines: str, outcome: str = "ACCEPTED", reason: str = "") -> pb.InstructAck:
    return pb.InstructAck(
        instruction_id=name,
        outcome=pb.InstructAck.Outcome.Value(f"OUTCOME_{outcome}"),
        machine_ids=machines,
        reason=reason,
    )


@asynccontextmanager
async def fleet(store: MemoryStore | None = None) -> AsyncIterator[Moving]:
    async with leading(Moving(store)) as moving:
        assert isinstance(moving, Moving)
        yield moving


async def released(moving: Moving, *, idle: int = 10, slots: int = 0) -> str:
    """A move whose donor has let go of one machine; its id."""
    moving.clock.advance(40)
    await moving.hear("a", idle=idle, slots=slots)
    await moving.hear("b", lacks=4)
    await until(lambda: bool(moving.moves))
    await moving.think()
    (move,) = moving.moves
    assert list(await moving.hear("a")) == [f"{move.id}/pick"]
    await moving.hear("a", ack(f"{move.id}/pick", "m-1"), held=[(move.id, DONOR, "m-1")])
    assert moving.phase() is MovePhase.DONOR_RELEASED
    assert moving.moves[0].machine_ids == ("m-1",)
    return move.id


async def test_an_escalated_shortfall_is_met_step_by_step_and_counted() -> None:
    async with fleet() as moving:
        move = await released(moving)
        gave, took = (move, DONOR, "m-1"), (move, RECIPIENT, "m-1")
        told = await moving.hear("b")
        assert told[f"{move}/adopt"].transfer_ownership == pb.TransferOwnership(
            machine_ids=["m-1"], from_shard_id="a", to_shard_id="b"
        )
        await moving.hear("b", ack(f"{move}/adopt", "m-1"), held=[took])
        assert moving.phase() is MovePhase.RECIPIENT_ADOPTED
        assert not await moving.hear("b", held=[took]), "the donor forgets first"
        (settle,) = await moving.hear("a", held=[gave])
        await moving.hear("a", ack(settle))
        (settle,) = await moving.hear("b", held=[took])
        await moving.hear("b", ack(settle))
        assert moving.phase() is MovePhase.DONE
        assert moving.value("rebalance_moves_total", tier="idle", outcome="planned") == 1
        assert moving.value("rebalance_moves_total", tier="idle", outcome="done") == 1
        assert moving.value("rebalance_machines_total", tier="idle") == 1
        assert moving.value("rebalance_adoption_seconds_count") == 1
        assert (moving.value("rebalance_sweep_duration_seconds_count") or 0) >= 1
        assert moving.value("pending_instructions", shard="a") == 0


async def test_another_leader_goes_on_where_the_last_one_was() -> None:
    store = MemoryStore()
    async with fleet(store) as moving:
        move = await released(moving)
    async with fleet(store) as moving:
        assert not await moving.hear("b"), "the donor has not said yet that it let go"
        await moving.hear("a", held=[(move, DONOR, "m-1")])
        assert list(await moving.hear("b")) == [f"{move}/adopt"]


async def test_slots_and_their_quota_move_in_one_write() -> None:
    async with fleet() as moving:
        await moving.hear("a")
        await moving.hear("b")
        await moving.coordinator.apply(SetQuota("p", "r", {"a": 5, "b": 0}))
        move = await released(moving, idle=0, slots=10)
        await moving.hear("b", held=[(move, RECIPIENT, "m-1")])
        state = moving.coordinator.lead().state
        assert state.quotas["p", "r"] == {"a": 4, "b": 1}


async def test_machines_of_a_recipient_that_cannot_take_them_go_back() -> None:
    async with fleet() as moving:
        move = await released(moving)
        gave = (move, DONOR, "m-1")
        for _ in range(5):
            moving.clock.advance(20)
            await moving.think()
            for _ in range(3):
                assert f"{move}/adopt" in await moving.hear("b")
                await moving.hear("b", ack(f"{move}/adopt", outcome="FAILED", reason="disk full"))
        assert moving.phase() is MovePhase.DONOR_RELEASED, "one answer may still have told it"
        assert not await moving.hear("b")
        assert moving.phase() is MovePhase.ABANDONED
        told = await moving.hear("a", held=[gave])
        assert told[f"{move}/back"].transfer_ownership.to_shard_id == "a"
        both = [gave, (move, RECIPIENT, "m-1")]
        await moving.hear("a", ack(f"{move}/back", "m-1"), held=both)
        (forget,) = await moving.hear("a", held=both)
        assert forget.startswith(f"{move}/forget-")
        assert not await moving.hear("a", ack(forget))
        assert moving.value("rebalance_moves_total", tier="idle", outcome="abandoned") == 1


async def test_machines_of_a_removed_recipient_go_back_and_are_given_up_if_it_returns() -> None:
    async with fleet() as moving:
        move = await released(moving)
        await moving.coordinator.apply(RemoveShard("b"))
        await moving.think()
        assert moving.phase() is MovePhase.DONOR_RELEASED
        moving.clock.advance(61)
        await moving.think()
        assert moving.phase() is MovePhase.ABANDONED
        await moving.hear("b", held=[(move, RECIPIENT, "m-1")])
        told = await moving.hear("b", held=[(move, RECIPIENT, "m-1")])
        assert told[f"{move}/back"].transfer_ownership.from_shard_id == "b"
        assert not await moving.hear("a", held=[(move, DONOR, "m-1")]), "not before b gave up"


async def test_a_donor_that_answers_after_the_move_was_given_up_gets_its_machines_back() -> None:
    async with fleet() as moving:
        moving.clock.advance(40)
        await moving.hear("a", idle=10)
        await moving.hear("b", lacks=4)
        await until(lambda: bool(moving.moves))
        (move,) = moving.moves
        moving.clock.advance(301)
        await moving.think()
        assert moving.phase() is MovePhase.ABANDONED
        await moving.hear("a", held=[(move.id, DONOR, "m-1")])
        assert list(await moving.hear("a", held=[(move.id, DONOR, "m-1")])) == [f"{move.id}/back"]


async def test_a_transfer_that_is_not_remembered_goes_back_once_everybody_was_heard() -> None:
    store = MemoryStore()
    async with fleet(store) as moving:
        await moving.hear("a")
        await moving.hear("b")
    async with fleet(store) as moving:
        lost = [("x", DONOR, "m-1")]
        await moving.hear("a", held=lost)
        assert not await moving.hear("a", held=lost), "b may have adopted it"
        await moving.hear("b")
        assert list(await moving.hear("a", held=lost)) == ["x/back"]


async def test_a_transfer_that_is_not_remembered_that_was_adopted_is_settled() -> None:
    async with fleet() as moving:
        gave, took = [("x", DONOR, "m-1")], [("x", RECIPIENT, "m-1")]
        await moving.hear("a", held=gave)
        await moving.hear("b", held=took)
        (settle,) = await moving.hear("a", held=gave)
        assert settle.startswith("x/settle-")
        await moving.hear("a", ack(settle))
        (settle,) = await moving.hear("b", held=took)
        assert not await moving.hear("b", ack(settle))


async def test_what_a_report_has_overtaken_is_not_told_with_its_answer() -> None:
    async with fleet() as moving:
        move = await released(moving)
        assert list(await moving.hear("b")) == [f"{move}/adopt"]
        assert not await moving.hear("b", held=[(move, RECIPIENT, "m-1")])


async def test_moves_that_are_over_are_forgotten_after_an_hour() -> None:
    async with fleet() as moving:
        moving.clock.advance(40)
        await moving.hear("a", idle=10)
        await moving.hear("b", lacks=4)
        await until(lambda: bool(moving.moves))
        moving.clock.advance(301)
        await moving.think()
        moving.clock.advance(3_590)
        await moving.moving.begin_round(moving.coordinator.lead())
        assert [move.phase for move in moving.moves] == [MovePhase.ABANDONED]
        moving.clock.advance(20)
        await moving.moving.begin_round(moving.coordinator.lead())
        assert moving.moves == []


async def test_suppressed_shortfalls_are_counted_with_their_reason() -> None:
    async with fleet() as moving:
        await moving.hear("b", lacks=4)
        await moving.moving.begin_round(moving.coordinator.lead())
        assert (moving.value("rebalance_suppressed_total", reason="no_donor") or 0) >= 1


async def test_stale_reports_are_left_out() -> None:
    async with fleet() as moving:
        await moving.hear("a", idle=10)
        moving.clock.advance(40)
        await moving.hear("b", lacks=4)
        await moving.moving.begin_round(moving.coordinator.lead())
        assert moving.moves == []
