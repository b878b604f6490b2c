"""Machines that a person keeps out stay out, over restarts, until a person lets them in."""

from __future__ import annotations

import asyncio

import pytest

from bigfleet.model import CapacityType, HostRef, Machine, MachineState
from bigfleet.model.columns import Symbols
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.exclusions import Exclusions
from bigfleet.shard.state.excluded_machines import FILE, ExcludedMachines
from clocks import HandClock
from coordinating import DictDisk, Slowly, inline


def machine(name: str) -> Machine:
    return Machine(
        name, MachineState.IDLE, HostRef("p", f"h-{name}"), "p", "", "", "t", "z",
        CapacityType.ON_DEMAND, resources={"cpu": 4000},
    )  # fmt: skip


def book(*names: str) -> Book:
    made = Book(Symbols(), HandClock())
    for name in names:
        made.take(machine(name))
    return made


def is_out(of: Book, name: str) -> bool:
    known = of.get(name)
    assert known is not None
    return known.excluded


async def test_what_is_kept_out_is_on_disk_before_it_counts() -> None:
    disk, there = DictDisk(), book("m-1", "m-2")
    excluded = Exclusions(there, ExcludedMachines(disk, inline))
    await excluded.set("m-1", True)
    assert is_out(there, "m-1")
    assert not is_out(there, "m-2")
    assert disk.files[FILE] == b'["m-1"]'
    disk.fails = True
    with pytest.raises(OSError, match="no room"):
        await excluded.set("m-2", True)
    assert not is_out(there, "m-2")
    assert "m-2" not in excluded


async def test_it_survives_a_restart_and_counts_as_machines_are_seen() -> None:
    disk = DictDisk()
    await Exclusions(book("m-1"), ExcludedMachines(disk, inline)).set("m-1", True)
    again, later = ExcludedMachines(disk, inline), book()
    again.load()
    Exclusions(later, again)
    assert len(list(again)) == 1
    later.take(machine("m-1"))
    later.take(machine("m-2"))
    assert is_out(later, "m-1")
    assert not is_out(later, "m-2")


async def test_a_machine_that_is_let_in_stays_in() -> None:
    disk, there = DictDisk(), book("m-1")
    excluded = Exclusions(there, ExcludedMachines(disk, inline))
    await excluded.set("m-1", True)
    await excluded.set("m-1", False)
    assert not is_out(there, "m-1")
    again = ExcludedMachines(disk, inline)
    again.load()
    assert not list(again)


async def test_a_machine_that_is_unknown_yet_can_be_kept_out() -> None:
    there = book()
    excluded = Exclusions(there, ExcludedMachines(DictDisk(), inline))
    await excluded.set("m-9", True)
    there.take(machine("m-9"))
    assert is_out(there, "m-9")


async def test_none_is_lost_when_several_are_kept_out_at_once() -> None:
    disk, names = DictDisk(), [f"m-{n}" for n in range(4)]
    there = book(*names)
    excluded = Exclusions(there, ExcludedMachines(disk, Slowly()))
    await asyncio.gather(*(excluded.set(name, True) for name in names))
    assert sorted(excluded) == names
    assert all(is_out(there, name) for name in names)
    await asyncio.gather(
        excluded.set("m-0", False),
        excluded.set("m-1", False),
        excluded.set("m-1", True),
    )
    again = ExcludedMachines(disk, inline)
    again.load()
    assert sorted(again) == sorted(excluded) == names[1:]
    assert [is_out(there, name) for name in names] == [False, True, True, True]


@pytest.mark.parametrize("content", [b"", b"m-1", b"7", b'{"m": 1'])
def test_an_unreadable_file_stops_the_start_with_the_remedy(content: bytes) -> None:
    disk = DictDisk()
    disk.files[FILE] = content
    with pytest.raises(DataFileError, match="fix it, or remove it"):
        ExcludedMachines(disk, inline).load()
