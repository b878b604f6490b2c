"""Which machines are this shard's: domains, the default shard, transfers, and restarts."""

import pytest

from bigfleet.model import CapacityType, Machine, MachineState
from bigfleet.shard.state.errors import OwnershipError
from bigfleet.shard.state.ownership import Domains, OwnershipFile, Transfer, TransferRole
from reconciling import MemoryDisk, at_once

ZONE = "topology.kubernetes.io/zone"


def machine(name: str = "m", zone: str = "", **labels: str) -> Machine:
    return Machine(
        name, MachineState.IDLE, zone=zone, capacity_type=CapacityType.SPOT, labels=labels
    )


def opened(disk: MemoryDisk | None = None) -> OwnershipFile:
    ownership = OwnershipFile(disk or MemoryDisk(), at_once)
    ownership.load()
    return ownership


def table(own: str = "", foreign: str = "", *, default: bool = False) -> Domains:
    return Domains(
        frozenset((ZONE, value) for value in own.split()),
        frozenset((ZONE, value) for value in foreign.split()),
        is_default=default,
        revision=5,
    )


def test_without_a_coordinator_everything_is_owned() -> None:
    assert opened().owns(machine(zone="z-1"))


async def test_domains_decide_and_the_rest_is_the_default_shards() -> None:
    for is_default in (False, True):
        ownership = opened()
        await ownership.assign(table("z-1", "z-2", default=is_default))
        owned = [ownership.owns(machine(zone=zone)) for zone in ("z-1", "z-2", "z-3", "")]
        assert owned == [True, False, is_default, is_default]


async def test_of_several_label_keys_the_one_in_use_for_the_longest_decides() -> None:
    mine, theirs = frozenset({(ZONE, "z-1")}), frozenset({("rack", "r-7")})
    for keys, is_owned in (((ZONE, "rack"), True), (("rack", ZONE), False)):
        ownership = opened()
        await ownership.assign(Domains(mine, theirs, False, 1, keys))
        assert ownership.owns(machine(zone="z-1", rack="r-7")) is is_owned
        assert ownership.owns(machine(zone="z-1", rack="r-8"))
        assert not ownership.owns(machine(zone="z-2", rack="r-7"))
        assert not ownership.owns(machine(zone="z-2", rack="r-8"))


async def test_without_their_order_a_machine_in_a_domain_of_another_shard_is_never_owned() -> None:
    ownership = opened()
    await ownership.assign(
        Domains(frozenset({(ZONE, "z-1")}), frozenset({("rack", "r-7")}), True, 1)
    )
    assert not ownership.owns(machine(zone="z-1", rack="r-7"))
    assert ownership.owns(machine(zone="z-1", rack="r-8"))


async def test_fields_speak_for_their_labels() -> None:
    ownership = opened()
    own = frozenset({("bigfleet.lucy.sh/capacity-type", "spot")})
    await ownership.assign(Domains(own, frozenset(), False, 1))
    assert ownership.owns(machine())
    await ownership.assign(table("z-1"))
    assert not ownership.owns(machine(zone="z-2", **{ZONE: "z-1"}))
    assert ownership.owns(machine(zone="", **{ZONE: "z-1"}))


async def test_instructions_alone_restrict_a_shard_to_its_domains_while_it_has_any() -> None:
    ownership = opened()
    await ownership.assign_domain((ZONE, "z-1"))
    assert [ownership.owns(machine(zone=zone)) for zone in ("z-1", "z-2")] == [True, False]
    await ownership.unassign_domain((ZONE, "z-1"))
    assert ownership.owns(machine(zone="z-2"))


async def test_an_instruction_takes_a_domain_over_in_the_table_as_well() -> None:
    ownership = opened()
    await ownership.assign(table("z-1", "z-2"))
    await ownership.assign_domain((ZONE, "z-2"))
    assert ownership.owns(machine(zone="z-2"))
    await ownership.unassign_domain((ZONE, "z-1"))
    assert not ownership.owns(machine(zone="z-1"))


async def test_what_was_received_is_owned_and_what_was_given_is_not_whatever_the_domain() -> None:
    ownership = opened()
    await ownership.assign(table("z-1", "z-2"))
    await ownership.receive("move-1", ["theirs"])
    await ownership.give("move-2", ["ours"])
    assert ownership.owns(machine("theirs", "z-2"))
    assert not ownership.owns(machine("ours", "z-1"))
    await ownership.give("move-3", ["theirs"])
    await ownership.receive("move-4", ["ours"])
    assert not ownership.owns(machine("theirs", "z-2"))
    assert ownership.owns(machine("ours", "z-1"))


async def test_everything_survives_a_restart_and_is_written_before_it_counts() -> None:
    disk = MemoryDisk()
    ownership = opened(disk)
    await ownership.assign(table("z-1", "z-2"))
    await ownership.receive("move-1", ["b", "a"])
    await ownership.give("move-2", ["ours"])
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        await ownership.give("move-3", ["a"])
    assert ownership.owns(machine("a", "z-2"))
    disk.full = False
    again = opened(disk)
    assert again.domains == table("z-1", "z-2")
    assert again.owns(machine("a", "z-2"))
    assert not again.owns(machine("ours", "z-1"))
    assert again.transfers == (
        Transfer("move-1", TransferRole.RECIPIENT, ("a", "b")),
        Transfer("move-2", TransferRole.DONOR, ("ours",)),
    )


async def test_a_settled_transfer_is_reported_no_more_and_still_holds() -> None:
    ownership = opened()
    await ownership.assign(table("z-1", "z-2"))
    await ownership.receive("move-1", ["a"])
    await ownership.receive("move-1", ["a"])
    assert len(ownership.transfers) == 1
    await ownership.settle("move-1")
    assert not list(ownership.transfers)
    assert ownership.owns(machine("a", "z-2"))


async def test_a_listener_learns_of_what_may_change_an_answer_and_of_nothing_else() -> None:
    disk, told = MemoryDisk(), list[frozenset[str] | None]()
    ownership = opened(disk)
    ownership.on_change.append(told.append)
    await ownership.assign(table("z-1"))
    await ownership.assign(table("z-1"))
    await ownership.give("move-1", ["m"])
    await ownership.settle("move-1")
    await ownership.receive("move-2", ["m", "n"])
    assert told == [None, {"m"}, {"m", "n"}]
    assert disk.replaces == 4


def test_an_unreadable_file_stops_the_start_with_the_remedy() -> None:
    with pytest.raises(OwnershipError, match="or remove it"):
        opened(MemoryDisk({"ownership": b"{"}))
