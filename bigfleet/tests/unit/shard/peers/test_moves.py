"""Machines that change their shard: picked, given, received, drained."""

import pytest

from bigfleet.model import Machine, MachineState
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.shard.peers.moves import move_of
from bigfleet.shard.peers.promises import PROMISE_SECONDS
from bigfleet.shard.state.done_instructions import FILE, DoneInstructions
from bigfleet.shard.state.errors import DoneInstructionsError
from bigfleet.shard.state.ownership import TransferRole
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from coordinating import (
    DictDisk,
    Shard,
    inline,
    instruct,
    machine,
    outcomes,
    stamp,
    transfer,
)

S = MachineState


def roles(shard: Shard) -> list[tuple[str, TransferRole, tuple[str, ...]]]:
    return [(t.move_id, t.role, t.machine_ids) for t in shard.ownership.transfers]


def test_a_move_is_named_before_the_last_slash() -> None:
    assert move_of("m-7/pick") == "m-7"
    assert move_of("a/b/adopt") == "a/b"
    assert move_of("i-12") == "i-12"


async def test_a_donor_picks_idle_machines_stops_owning_them_and_names_them() -> None:
    fleet = [
        machine("m-busy", S.CONFIGURED, stamp=stamp()),
        machine("m-claimed", stamp=stamp()),
        machine("m-idle-1", idle_since_ns=20),
        machine("m-idle-2", idle_since_ns=10),
        machine("m-slot", S.SPECULATIVE),
    ]
    shard = Shard(machines=fleet)
    acks = await shard.told(transfer("m/pick", count=5))
    assert list(acks[0].machine_ids) == ["m-idle-2", "m-idle-1"]
    assert roles(shard) == [("m", TransferRole.DONOR, ("m-idle-1", "m-idle-2"))]
    assert shard.book.get("m-idle-1") is None
    assert not shard.ownership.owns(fleet[2])
    assert shard.tally.moved == [("out", 2)]
    shard.listed(fleet)
    assert shard.book.get("m-idle-1") is None, "listed again, but not taken back"


async def test_accepted_without_picks_means_none_to_give() -> None:
    acks = await Shard().told(transfer("m/pick", count=5))
    assert outcomes(acks) == ["ACCEPTED"]
    assert not acks[0].machine_ids


@pytest.mark.parametrize(
    "asked",
    [
        transfer("m/pick", count=5),
        transfer("m/pick", count=5, provider="p"),
        transfer("m/give", ["m-1"]),
        instruct("m/pick", reassign_speculative=pb.ReassignSpeculative(count=1)),
        instruct("m/drain", cross_shard_drain=pb.CrossShardDrain(count=1, preemptor_priority=9)),
    ],
)
async def test_a_donor_says_nothing_before_it_has_seen_its_machines(
    asked: pb.CoordinatorInstruction,
) -> None:
    shard = Shard()
    shard.unheard = ["p"]
    assert await shard.told(asked) == []
    assert shard.tally.instructions == []
    shard.unheard = []
    assert outcomes(await shard.told(asked)) == ["ACCEPTED"]


async def test_a_donor_gives_what_it_has_seen_of_a_provider_that_was_heard() -> None:
    shard = Shard(machines=[machine("m-1")])
    shard.unheard = ["q"]
    (none,) = await shard.told(transfer("n/pick", count=1, provider="p", instance_type="gpu"))
    assert not none.machine_ids
    (ack,) = await shard.told(transfer("m/pick", count=5))
    assert list(ack.machine_ids) == ["m-1"]


async def test_machines_being_acted_on_and_excluded_ones_are_not_picked() -> None:
    shard = Shard(machines=[machine("m-1"), machine("m-2"), machine("m-3")])
    shard.book.mark_busy("m-1")
    shard.book.exclude("m-2", True)
    acks = await shard.told(transfer("m/pick", count=5))
    assert list(acks[0].machine_ids) == ["m-3"]


@pytest.mark.parametrize(
    ("wish", "fits"),
    [
        ({"instance_type": "gpu"}, {"m-gpu"}),
        ({"zone": "z-b"}, {"m-b"}),
        ({"provider": "q"}, {"m-q"}),
        ({"region": "far"}, {"m-far"}),
        ({"min_unit": provider.Resources(resources={"cpu": "4001m"})}, {"m-big"}),
        ({"min_unit": provider.Resources(resources={"cpu": "8"})}, {"m-big"}),
        ({"min_unit": provider.Resources(resources={"nvidia.com/gpu": "1"})}, set()),
        (
            {
                "requirements": [
                    capacity.NodeSelectorRequirement(
                        key="topology.kubernetes.io/rack",
                        operator=capacity.NodeSelectorRequirement.OPERATOR_IN,
                        values=["r-7"],
                    )
                ]
            },
            {"m-rack"},
        ),
        (
            {
                "requirements": [
                    capacity.NodeSelectorRequirement(
                        key="pool",
                        operator=capacity.NodeSelectorRequirement.OPERATOR_EXISTS,
                    )
                ]
            },
            {"m-pool"},
        ),
    ],
    ids=["type", "zone", "provider", "region", "milli", "unit", "unknown", "rack", "label"],
)
async def test_picks_are_as_wished(wish: dict[str, object], fits: set[str]) -> None:
    fleet = [
        machine("m-1"),
        machine("m-gpu", kind="gpu"),
        machine("m-b", zone="z-b"),
        machine("m-q", provider="q"),
        machine("m-far", region="far"),
        machine("m-big", cpu=8_000),
        machine("m-rack", labels={"topology.kubernetes.io/rack": "r-7"}),
        machine("m-pool", labels={"pool": "p"}),
    ]
    said = pb.TransferOwnership(
        from_shard_id="s-1", to_shard_id="s-2", count=9, **wish  # type: ignore[arg-type]
    )  # fmt: skip
    acks = await Shard(machines=fleet).told(instruct("m/pick", transfer_ownership=said))
    assert set(acks[0].machine_ids) == fits


async def test_a_wish_that_cannot_be_read_is_invalid() -> None:
    unreadable = provider.Resources(resources={"cpu": "many"})
    acks = await Shard().told(transfer("m/pick", count=1, min_unit=unreadable))
    assert outcomes(acks) == ["REJECTED_INVALID"]


async def test_a_recipient_owns_exactly_what_is_named() -> None:
    shard = Shard("s-2")
    await shard.ownership.assign_domain(("zone", "elsewhere"))
    acks = await shard.told(transfer("m/adopt", ["m-1", "m-2", "m-1"]))
    assert list(acks[0].machine_ids) == ["m-1", "m-2"]
    assert shard.ownership.owns(machine("m-1"))
    assert not shard.ownership.owns(machine("m-3"))
    assert roles(shard) == [("m", TransferRole.RECIPIENT, ("m-1", "m-2"))]
    assert shard.tally.moved == [("in", 2)]


async def test_naming_a_carried_out_transfer_again_settles_it() -> None:
    donor, recipient = Shard(machines=[machine("m-1")]), Shard("s-2")
    await donor.told(transfer("m/pick", count=1))
    await recipient.told(transfer("m/adopt", ["m-1"]))
    for shard in (donor, recipient):
        assert roles(shard)
        acks = await shard.told(transfer("m/settle", ["m-1"]))
        assert outcomes(acks) == ["ACCEPTED"]
        assert not roles(shard)
    assert not donor.ownership.owns(machine("m-1"))
    assert donor.tally.moved == [("out", 1)]
    assert recipient.tally.moved == [("in", 1)]


async def test_a_transfer_between_others_or_to_itself_is_invalid() -> None:
    shard = Shard()
    acks = await shard.told(
        transfer("i-1", ["m-1"], donor="s-3"), transfer("i-2", ["m-1"], to="s-1")
    )
    assert outcomes(acks) == ["REJECTED_INVALID", "REJECTED_INVALID"]
    acks = await Shard("s-2").told(transfer("i-3", count=1))
    assert outcomes(acks) == ["REJECTED_INVALID"], "a recipient cannot pick"


@pytest.mark.parametrize(
    "held_back",
    [
        machine("m-1", S.CONFIGURED, stamp=stamp()),
        machine("m-1", stamp=stamp()),
    ],
    ids=["bound", "claimed"],
)
async def test_named_machines_are_given_all_or_none(held_back: object) -> None:
    shard = Shard(machines=[machine("m-0"), held_back])  # type: ignore[list-item]
    acks = await shard.told(transfer("m/release", ["m-0", "m-1", "m-unknown"]))
    assert outcomes(acks) == ["FAILED"]
    assert "m-1" in acks[0].reason
    assert len(shard.book) == 2
    assert not roles(shard)


async def test_a_named_machine_under_way_is_not_given_now() -> None:
    shard = Shard(machines=[machine("m-0"), machine("m-1")])
    shard.book.mark_busy("m-1")
    assert outcomes(await shard.told(transfer("m/release", ["m-0", "m-1"]))) == ["FAILED"]
    assert not shard.book.busy("m-0")
    shard.book.free("m-1")
    assert outcomes(await shard.told(transfer("m/release", ["m-0", "m-1"]))) == ["ACCEPTED"]


async def test_speculative_machines_go_by_whichever_shard_has_them() -> None:
    slots = [machine(f"m-{n}", S.SPECULATIVE) for n in range(3)]
    donor, recipient = Shard(machines=slots), Shard("s-2")
    pick = pb.ReassignSpeculative(count=2)
    picked = (await donor.told(instruct("m/pick", reassign_speculative=pick)))[0].machine_ids
    assert list(picked) == ["m-0", "m-1"]
    named = pb.ReassignSpeculative(machine_ids=picked)
    await recipient.told(instruct("m/adopt", reassign_speculative=named))
    assert roles(recipient) == [("m", TransferRole.RECIPIENT, ("m-0", "m-1"))]
    await donor.told(instruct("m/settle", reassign_speculative=named))
    assert not roles(donor)
    again = Shard(disk=donor.disk)
    acks = await again.told(instruct("m/settle-2", reassign_speculative=named))
    assert outcomes(acks) == ["ACCEPTED"]
    assert not again.ownership.owns(slots[0]), "named once more, it does not take them back"


async def test_a_restarted_donor_gives_the_same_answer() -> None:
    fleet = [machine(f"m-{n}") for n in range(4)]
    shard = Shard(machines=fleet)
    picked = list((await shard.told(transfer("m/pick", count=2)))[0].machine_ids)
    again = Shard(machines=fleet, disk=shard.disk)
    acks = await again.told(transfer("m/pick", count=2))
    assert list(acks[0].machine_ids) == picked
    assert len(again.book) == 2


async def test_a_donor_that_crashed_between_giving_and_remembering_gives_nothing_more() -> None:
    fleet = [machine(f"m-{n}") for n in range(4)]
    shard = Shard(machines=fleet)
    picked = set((await shard.told(transfer("m/pick", count=2)))[0].machine_ids)
    del shard.disk.files[FILE]
    again = Shard(machines=fleet, disk=shard.disk)
    acks = await again.told(transfer("m/pick-of-the-next-leader", count=2))
    assert set(acks[0].machine_ids) == picked
    assert roles(again), "still to be settled"


async def test_machines_can_come_back_with_another_move() -> None:
    shard = Shard(machines=[machine("m-1")])
    await shard.told(transfer("m-1/pick", count=1))
    await shard.told(transfer("m-2/adopt", ["m-1"], donor="s-2", to="s-1"))
    assert shard.ownership.owns(machine("m-1"))


async def test_victims_serve_less_and_cost_least_first() -> None:
    fleet = [
        machine("m-expensive", S.CONFIGURED, stamp=stamp(0, 1, 9)),
        machine("m-cheap", S.CONFIGURED, stamp=stamp(5, 1, 2)),
        machine("m-peer", S.CONFIGURED, stamp=stamp(10, 1, 1)),
        machine("m-risky", S.CONFIGURED, stamp=stamp(0, 7, 1)),
        machine("m-calm", S.CONFIGURED, stamp=stamp(0, 1, 1), do_not_disrupt=True),
        machine("m-idle"),
    ]
    shard = Shard(machines=fleet)
    drain = pb.CrossShardDrain(
        preemptor_priority=10,
        count=5,
        interruption_penalty_bucket=capacity.PenaltyBucket.ValueType(7),
    )
    acks = await shard.told(instruct("m/drain", cross_shard_drain=drain))
    assert list(acks[0].machine_ids) == ["m-cheap", "m-expensive"]
    assert shard.preempted == [("m-cheap", 10), ("m-expensive", 10)]


async def test_a_machine_drained_for_another_is_kept_for_it_and_then_given() -> None:
    shard = Shard(machines=[machine("m-1", S.CONFIGURED, stamp=stamp())])
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    await shard.told(instruct("m/drain", cross_shard_drain=drain))
    kept = shard.book.get("m-1")
    assert kept is not None
    assert kept.reserved
    shard.book.start("m-1", S.DRAINING)
    shard.book.take(machine("m-1"))
    acks = await shard.told(transfer("m/release", ["m-1"]))
    assert outcomes(acks) == ["ACCEPTED"]
    assert shard.book.get("m-1") is None


async def test_a_machine_that_no_shard_fetches_is_the_shards_to_use_again() -> None:
    shard = Shard(machines=[machine("m-1", S.CONFIGURED, stamp=stamp())])
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    await shard.told(instruct("m/drain", cross_shard_drain=drain))
    shard.clock.advance(PROMISE_SECONDS)
    shard.moves.promises.expire()
    kept = shard.book.get("m-1")
    assert kept is not None
    assert not kept.reserved


async def test_a_machine_an_administrator_excluded_stays_so() -> None:
    shard = Shard(machines=[machine("m-1", S.CONFIGURED, stamp=stamp())])
    shard.book.exclude("m-1", True)
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    await shard.told(instruct("m/drain", cross_shard_drain=drain))
    shard.clock.advance(PROMISE_SECONDS)
    shard.moves.promises.expire()
    kept = shard.book.get("m-1")
    assert kept is not None
    assert kept.excluded


async def test_including_a_machine_does_not_end_a_promise_to_another_shard() -> None:
    shard = Shard(machines=[machine("m-1", S.CONFIGURED, stamp=stamp())])
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    await shard.told(instruct("m/drain", cross_shard_drain=drain))
    shard.book.exclude("m-1", True)
    shard.book.exclude("m-1", False)
    assert reserved(shard) == {"m-1"}


async def test_a_promised_machine_that_a_person_excludes_is_not_given() -> None:
    shard = Shard(machines=[machine("m-1", S.CONFIGURED, stamp=stamp())])
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    await shard.told(instruct("m/drain", cross_shard_drain=drain))
    shard.book.start("m-1", S.DRAINING)
    shard.book.take(machine("m-1"))
    shard.book.exclude("m-1", True)
    assert outcomes(await shard.told(transfer("m/release", ["m-1"]))) == ["FAILED"]
    shard.book.exclude("m-1", False)
    assert outcomes(await shard.told(transfer("m/again", ["m-1"]))) == ["ACCEPTED"]


def drains(*ids: str, count: int = 0) -> pb.CoordinatorInstruction:
    drain = pb.CrossShardDrain(machine_ids=ids, count=count, preemptor_priority=10)
    return instruct("m/drain", cross_shard_drain=drain)


def reserved(shard: Shard) -> set[str]:
    fleet = shard.book.snapshot()
    return {name for name in fleet.ids if (known := shard.book.get(name)) and known.reserved}


def bound(count: int) -> list[Machine]:
    return [machine(f"m-{n}", S.CONFIGURED, stamp=stamp()) for n in range(count)]


async def test_only_what_is_really_drained_is_named_and_promised() -> None:
    shard = Shard(machines=bound(2))
    shard.refusals["m-0"] = DrainRefusedError("something else is being done to 'm-0': try again")
    (ack,) = await shard.told(drains("m-0", "m-1"))
    assert (outcomes([ack]), list(ack.machine_ids)) == (["ACCEPTED"], ["m-1"])
    assert reserved(shard) == {"m-1"}


async def test_a_drain_that_nothing_comes_of_is_no_success() -> None:
    shard = Shard(machines=bound(1))
    shard.refusals["m-0"] = NotActingError("shard 's-1' is paused (incident)")
    for asked in (drains("m-0"), drains(count=1)):
        (ack,) = await shard.told(asked)
        assert (outcomes([ack]), list(ack.machine_ids)) == (["FAILED"], [])
        assert ack.reason == "shard 's-1' is paused (incident)"
    assert not reserved(shard)
    shard.refusals.clear()
    assert outcomes(await shard.told(drains("m-0"))) == ["ACCEPTED"], "asked again, it is done"


async def test_who_cannot_be_drained_now_is_passed_over() -> None:
    shard = Shard(machines=bound(4))
    shard.refusals["m-0"] = DrainRefusedError("left alone")
    (ack,) = await shard.told(drains(count=2))
    assert list(ack.machine_ids) == ["m-1", "m-2"]


async def test_a_machine_whose_drain_came_to_nothing_is_the_shards_to_use_again() -> None:
    shard = Shard(machines=bound(2))
    await shard.told(drains("m-0", "m-1"))
    shard.book.stay("m-0")
    shard.moves.promises.expire()
    assert reserved(shard) == {"m-1"}


async def test_a_promise_outlives_a_restart() -> None:
    shard = Shard(machines=bound(2))
    await shard.told(drains("m-0"))
    again = Shard(machines=[machine("m-0"), *bound(2)[1:]], disk=shard.disk, clock=shard.clock)
    again.moves.promises.expire()
    assert reserved(again) == {"m-0"}
    assert outcomes(await again.told(transfer("m/give", ["m-0"]))) == ["ACCEPTED"]
    again.book.take(machine("m-0"))
    assert not reserved(again), "it was given, and is back"
    last = Shard(machines=[machine("m-0")], disk=shard.disk, clock=shard.clock)
    assert not reserved(last)


async def test_a_promise_ends_in_time_whichever_shard_restarts() -> None:
    shard = Shard(machines=bound(1))
    await shard.told(drains("m-0"))
    shard.clock.advance(PROMISE_SECONDS - 60)
    again = Shard(machines=[machine("m-0")], disk=shard.disk, clock=shard.clock)
    assert reserved(again) == {"m-0"}
    shard.clock.advance(60)
    again.moves.promises.expire()
    assert not reserved(again)
    assert not reserved(Shard(machines=[machine("m-0")], disk=shard.disk, clock=shard.clock))


async def test_a_file_of_an_older_release_promises_nothing() -> None:
    disk = DictDisk()
    disk.files[FILE] = b'[{"instruction_id":"m/drain","move_id":"m","machine_ids":["m-0"]}]'
    assert not reserved(Shard(machines=[machine("m-0")], disk=disk))


@pytest.mark.parametrize(
    "wrong",
    [
        machine("m-1"),
        machine("m-1", S.CONFIGURED),
        machine("m-1", S.CONFIGURED, stamp=stamp(10)),
        machine("m-1", S.CONFIGURED, stamp=stamp(), do_not_disrupt=True),
        machine("m-other", S.CONFIGURED, stamp=stamp()),
    ],
    ids=["idle", "unknown-priority", "as-important", "do-not-disrupt", "not-here"],
)
async def test_a_named_victim_that_must_not_be_drained_is_left_alone(wrong: object) -> None:
    shard = Shard(machines=[wrong])  # type: ignore[list-item]
    drain = pb.CrossShardDrain(machine_ids=["m-1"], preemptor_priority=10)
    acks = await shard.told(instruct("m/drain", cross_shard_drain=drain))
    assert outcomes(acks) == ["FAILED"]
    assert not shard.preempted


def test_a_file_that_cannot_be_read_says_what_to_do() -> None:
    disk = DictDisk()
    disk.files[FILE] = b"?"
    with pytest.raises(DoneInstructionsError, match="restore it"):
        DoneInstructions(disk, inline).load()
