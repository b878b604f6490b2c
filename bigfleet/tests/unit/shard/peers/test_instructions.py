"""Fences, once by id, and an outcome that says what happened."""

import logging

import pytest

from bigfleet.model import MachineState
from bigfleet.shard.state.ownership import Domains
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Shard, answer, instruct, machine, outcomes, transfer

S = MachineState
ASSIGN = pb.AssignDomain(topology_key="zone", topology_value="z-a")


async def test_an_answer_of_an_older_leadership_is_dropped_whole_without_acks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shard = Shard(machines=[machine("m-1")])
    await shard.told(term=5)
    old = answer(transfer("m/pick", count=1), term=4)
    old.assignments.revision = 9
    with caplog.at_level(logging.ERROR):
        assert await shard.instructions.take(old) == []
    assert caplog.records[0].message == "coordinator term validation failed"
    assert vars(caplog.records[0])["term"] == 4
    assert shard.instructions.revision == 0
    assert shard.book.get("m-1") is not None
    assert shard.tally.instructions == [("transfer_ownership", "stale_term")]


async def test_term_zero_and_an_equal_term_pass_and_a_higher_one_moves_the_mark() -> None:
    shard = Shard()
    for term in (3, 0, 3, 4):
        acks = await shard.told(
            instruct(f"i-{term}-{len(shard.tally.terms)}", term or 3, assign_domain=ASSIGN),
            term=term,
        )
        assert outcomes(acks) == ["ACCEPTED"] or term == 4
    assert shard.instructions.term == 4
    assert shard.tally.terms == [3, 4]


async def test_an_old_instruction_in_a_good_answer_is_refused_as_stale() -> None:
    shard = Shard()
    acks = await shard.told(instruct("i-1", 4, assign_domain=ASSIGN), term=5)
    assert outcomes(acks) == ["REJECTED_STALE"]
    assert not shard.ownership.domains.own
    assert shard.tally.instructions == [("assign_domain", "stale_term")]
    assert shard.remembered.get("i-1") is None


async def test_an_instruction_of_a_higher_term_moves_the_mark_too() -> None:
    shard = Shard()
    await shard.told(instruct("i-1", 7, assign_domain=ASSIGN), term=5)
    assert shard.instructions.term == 7


async def test_a_second_delivery_has_no_second_effect_and_says_so() -> None:
    shard = Shard(machines=[machine(f"m-{n}") for n in range(4)])
    first = await shard.told(transfer("m/pick", count=2))
    second = await shard.told(transfer("m/pick", count=2))
    assert second[0].reason == "duplicate-redelivery"
    assert list(second[0].machine_ids) == list(first[0].machine_ids)
    assert len(shard.book) == 2
    assert [outcome for _, outcome in shard.tally.instructions] == ["done", "duplicate"]


async def test_a_done_instruction_is_a_duplicate_even_under_an_old_term() -> None:
    shard = Shard()
    await shard.told(instruct("i-1", assign_domain=ASSIGN))
    acks = await shard.told(instruct("i-1", 1, assign_domain=ASSIGN), term=2)
    assert outcomes(acks) == ["ACCEPTED"]


async def test_what_has_no_id_is_ignored_and_what_is_unknown_is_refused() -> None:
    shard = Shard()
    acks = await shard.told(instruct("", assign_domain=ASSIGN), instruct("i-1"))
    assert [ack.instruction_id for ack in acks] == ["i-1"]
    assert outcomes(acks) == ["REJECTED_INVALID"]
    assert shard.tally.instructions == []
    assert not shard.ownership.domains.own


@pytest.mark.parametrize(
    "payload",
    [
        {"reassign_speculative": pb.ReassignSpeculative()},
        {"cross_shard_drain": pb.CrossShardDrain(preemptor_priority=5)},
        {"transfer_ownership": pb.TransferOwnership(from_shard_id="s-1", to_shard_id="s-2")},
        {"assign_domain": pb.AssignDomain(topology_key="zone")},
    ],
    ids=["reassign", "drain", "transfer", "domain"],
)
async def test_an_instruction_that_names_nothing_is_invalid(payload: dict[str, object]) -> None:
    acks = await Shard().told(instruct("i-1", **payload))
    assert outcomes(acks) == ["REJECTED_INVALID"]
    assert acks[0].reason


async def test_a_failed_instruction_is_tried_again_when_it_comes_again() -> None:
    shard = Shard(machines=[machine("m-1")])
    shard.disk.fails = True
    assert outcomes(await shard.told(transfer("m/pick", count=1))) == ["FAILED"]
    assert shard.book.get("m-1") is not None
    assert not shard.book.busy("m-1")
    shard.disk.fails = False
    acks = await shard.told(transfer("m/pick", count=1))
    assert outcomes(acks) == ["ACCEPTED"]
    assert list(acks[0].machine_ids) == ["m-1"]
    assert [outcome for _, outcome in shard.tally.instructions] == ["failed", "done"]


async def test_assignments_replace_domains_and_are_passed_on_before_instructions() -> None:
    shard = Shard()
    said = answer(instruct("i-1", unassign_domain=pb.UnassignDomain(
        topology_key="zone", topology_value="z-b")))  # fmt: skip
    for key, value in (("zone", "z-a"), ("zone", "z-b"), ("", "unknown")):
        said.assignments.domains.add(topology_key=key, topology_value=value, shard_id="s-1")
    said.assignments.foreign_domains.add(topology_key="zone", topology_value="z-c", shard_id="s-2")
    said.assignments.revision = 12
    said.assignments.is_default = True
    await shard.instructions.take(said)
    assert shard.ownership.domains == Domains(
        frozenset({("zone", "z-a")}), frozenset({("zone", "z-c")}), True, 12
    )
    assert shard.instructions.revision == 12
    assert shard.assigned == [said.assignments]


async def test_assignments_that_cannot_be_kept_are_asked_for_again() -> None:
    shard = Shard()
    said = answer()
    said.assignments.revision = 12
    said.assignments.domains.add(topology_key="zone", topology_value="z-a", shard_id="s-1")
    shard.disk.fails = True
    with pytest.raises(OSError, match="no room"):
        await shard.instructions.take(said)
    assert shard.instructions.revision == 0
    assert not shard.assigned


async def test_domains_travel_by_instruction_as_well() -> None:
    shard = Shard()
    await shard.told(instruct("i-1", assign_domain=ASSIGN))
    assert shard.ownership.domains.own == {("zone", "z-a")}
    taken = pb.UnassignDomain(topology_key="zone", topology_value="z-a")
    await shard.told(instruct("i-2", unassign_domain=taken))
    assert not shard.ownership.domains.own
