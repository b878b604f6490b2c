"""What a shard is told, how often, and what its acknowledgements do."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.leadership.ports import NoRebalancer
from bigfleet.coordinator.reports.instructions import EndedInstruction
from bigfleet.coordinator.server import listings
from bigfleet.coordinator.state import AssignDomain, RemoveShard, UnassignDomain
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinators import Fleet, leading

Ack = pb.InstructAck


class Listener(NoRebalancer):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[EndedInstruction] = []

    def acknowledged(self, leader_state: LeaderState, ended: EndedInstruction) -> None:
        self.heard.append(ended)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
async def fleet(listener: Listener) -> AsyncIterator[Fleet]:
    async with leading(Fleet(rebalancer=listener)) as fleet:
        await fleet.report("s-1")
        yield fleet


def give(fleet: Fleet, name: str = "m-1/pick", count: int = 3) -> None:
    fleet.coordinator.lead().instructions.give(
        "s-1", pb.TransferOwnership(from_shard_id="s-1", to_shard_id="s-2", count=count), name
    )


async def told(fleet: Fleet, *acks: pb.InstructAck) -> list[str]:
    answer = await fleet.report("s-1", instruction_acks=acks)
    return [one.instruction_id for one in answer.instructions]


async def test_an_instruction_is_repeated_until_it_is_acknowledged(fleet: Fleet) -> None:
    give(fleet)
    assert await told(fleet) == ["m-1/pick"]
    assert await told(fleet) == ["m-1/pick"]
    assert fleet.value("pending_instructions", shard="s-1") == 1
    accepted = Ack(instruction_id="m-1/pick", outcome=Ack.OUTCOME_ACCEPTED)
    assert await told(fleet, accepted) == []
    assert fleet.value("pending_instructions", shard="s-1") == 0


async def test_instructions_carry_the_term_and_rising_numbers(fleet: Fleet) -> None:
    for name in ("a/pick", "b/pick", "c/pick"):
        give(fleet, name)
    answer = await fleet.report("s-1")
    assert [one.sequence_number for one in answer.instructions] == [1, 2, 3]
    assert {one.coordinator_term for one in answer.instructions} == {1}
    assert answer.instructions[0].transfer_ownership.count == 3


async def test_the_same_id_given_again_overwrites(fleet: Fleet) -> None:
    give(fleet, "a", count=1)
    give(fleet, "b", count=1)
    give(fleet, "a", count=9)
    answer = await fleet.report("s-1")
    assert [(one.instruction_id, one.transfer_ownership.count) for one in answer.instructions] == [
        ("b", 1),
        ("a", 9),
    ]


async def test_a_stale_instruction_leaves_the_queue(fleet: Fleet, listener: Listener) -> None:
    give(fleet)
    stale = Ack(instruction_id="m-1/pick", outcome=Ack.OUTCOME_REJECTED_STALE, reason="term")
    assert await told(fleet, stale) == []
    assert [(one.outcome, one.is_gone) for one in listener.heard] == [
        (Ack.OUTCOME_REJECTED_STALE, True)
    ]


@pytest.mark.parametrize(
    ("outcome", "read_as"),
    [
        (Ack.OUTCOME_FAILED, Ack.OUTCOME_FAILED),
        (Ack.OUTCOME_REJECTED_INVALID, Ack.OUTCOME_REJECTED_INVALID),
        (Ack.OUTCOME_UNSPECIFIED, Ack.OUTCOME_FAILED),
    ],
)
async def test_a_failed_instruction_is_recorded_and_tried_three_times(
    fleet: Fleet,
    listener: Listener,
    caplog: pytest.LogCaptureFixture,
    outcome: pb.InstructAck.Outcome.ValueType,
    read_as: pb.InstructAck.Outcome.ValueType,
) -> None:
    give(fleet)
    failed = Ack(instruction_id="m-1/pick", outcome=outcome, reason="disk full")
    for tries in (1, 2):
        assert await told(fleet, failed) == ["m-1/pick"]
        (seen,) = listings.instructions(fleet.coordinator.lead(), "s-1").instructions
        assert (seen.tries, seen.last_outcome, seen.last_reason) == (tries, read_as, "disk full")
    with caplog.at_level(logging.WARNING):
        assert await told(fleet, failed) == []
    assert "instruction dropped" in caplog.text
    assert [one.is_gone for one in listener.heard] == [False, False, True]
    assert listener.heard[-1].pending.tries == 3


async def test_picks_are_handed_on_and_none_means_none_to_give(
    fleet: Fleet, listener: Listener
) -> None:
    give(fleet, "m-1/pick")
    give(fleet, "m-2/pick")
    picked = Ack(instruction_id="m-1/pick", outcome=Ack.OUTCOME_ACCEPTED, machine_ids=["x", "y"])
    without = Ack(instruction_id="m-2/pick", outcome=Ack.OUTCOME_ACCEPTED)
    assert await told(fleet, picked, without) == []
    assert [one.machine_ids for one in listener.heard] == [("x", "y"), ()]
    assert all(one.is_accepted for one in listener.heard)


async def test_acks_no_caller_waits_for_are_ignored(fleet: Fleet, listener: Listener) -> None:
    give(fleet)
    other = Ack(instruction_id="another", outcome=Ack.OUTCOME_ACCEPTED)
    assert await told(fleet, other) == ["m-1/pick"]
    assert listener.heard == []


async def test_a_domain_is_told_as_an_instruction_as_well(fleet: Fleet) -> None:
    await fleet.report("s-2")
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    answer = await fleet.report("s-1")
    assert answer.instructions[0].assign_domain.topology_value == "a"
    assert not (await fleet.report("s-2")).instructions
    # What is not wanted any more is not told beside it.
    await fleet.coordinator.apply(UnassignDomain("zone", "a"))
    answer = await fleet.report("s-1")
    assert [one.WhichOneof("payload") for one in answer.instructions] == ["unassign_domain"]


async def test_a_domain_that_comes_and_goes_is_told_each_time(fleet: Fleet) -> None:
    for _ in range(3):
        for command in (AssignDomain("zone", "a", "s-1"), UnassignDomain("zone", "a")):
            await fleet.coordinator.apply(command)
            (one,) = (await fleet.report("s-1")).instructions
            ack = Ack(instruction_id=one.instruction_id, outcome=Ack.OUTCOME_ACCEPTED)
            assert await told(fleet, ack) == []


async def test_a_domain_that_is_there_already_is_not_told_again(fleet: Fleet) -> None:
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    await fleet.coordinator.apply(AssignDomain("zone", "a", "s-1"))
    assert len((await fleet.report("s-1")).instructions) == 1
    await fleet.coordinator.apply(UnassignDomain("zone", "never-was"))
    assert len((await fleet.report("s-1")).instructions) == 1


async def test_instructions_are_listed_by_shard_then_number(fleet: Fleet) -> None:
    await fleet.report("s-0")
    instructions = fleet.coordinator.lead().instructions
    for shard in ("s-1", "s-0", "s-1"):
        instructions.give(shard, pb.CrossShardDrain(count=1))
    listed = listings.instructions(fleet.coordinator.lead(), "").instructions
    assert [(one.shard_id, one.instruction.sequence_number) for one in listed] == [
        ("s-0", 2), ("s-1", 1), ("s-1", 3)
    ]  # fmt: skip
    assert listed[0].enqueued_at_unix_ns == fleet.clock.now()


async def test_what_is_withdrawn_or_belongs_to_a_removed_shard_is_not_told(fleet: Fleet) -> None:
    give(fleet, "a")
    give(fleet, "b")
    instructions = fleet.coordinator.lead().instructions
    instructions.withdraw("s-1", "a")
    instructions.withdraw("s-1", "never-was")
    assert instructions.find("s-1", "a") is None
    assert await told(fleet) == ["b"]
    await fleet.coordinator.apply(RemoveShard("s-1"))
    assert await told(fleet) == []
