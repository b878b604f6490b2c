"""Whatever the moment of a crash, the journal holds a prefix of what was asked, with all that was
acknowledged in it."""

import asyncio
from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings

from bigfleet.shard.state.journal import Journal, JournalEntry
from reconciling import at_once
from sim.loop import virtual_loop
from sim.ports import SimDisk, SimOffload
from sim.process import Process

OPERATIONS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3)), max_size=60)


def after(operations: list[tuple[str, int]]) -> dict[str, JournalEntry]:
    """The obvious journal."""
    known: dict[str, JournalEntry] = {}
    for machine, deadline in operations:
        known.pop(machine, None)
        if deadline:
            known[machine] = JournalEntry(deadline_ns=deadline)
    return known


class Run:
    """One journal in one process that dies after so many steps."""

    def __init__(self, operations: list[tuple[str, int]], crash_after: int, seed: int) -> None:
        self.operations = operations
        self.disk = SimDisk(Random(seed))
        self.process = Process("shard")
        self.process.at_death(self.disk.crash)
        self.process.crash_after(crash_after)
        self.issued: list[tuple[str, int]] = []
        self.acknowledged = 0
        virtual_loop(seed).run(self.play(Random(seed)))

    async def play(self, rng: Random) -> None:
        offload = SimOffload(self.process, self.disk, rng, seconds=1.0)
        journal = Journal(self.disk, offload, few=4)
        self.process.spawn(journal.run(), "journal")
        for machine, deadline in self.operations:
            if not self.process.alive:
                return
            self.process.spawn(self.call(journal, machine, deadline), "caller")
            await asyncio.sleep(rng.random() * 0.5)
        await asyncio.sleep(1_000)
        self.process.crash()

    async def call(self, journal: Journal, machine: str, deadline: int) -> None:
        self.issued.append((machine, deadline))
        number = len(self.issued)
        if deadline:
            await journal.remember(machine, JournalEntry(deadline_ns=deadline))
            self.acknowledged = max(self.acknowledged, number)
        else:
            await journal.forget(machine)


@settings(max_examples=300)
@given(OPERATIONS, st.integers(1, 300), st.integers(0, 2**32))
def test_a_crash_leaves_a_prefix_with_all_that_was_acknowledged(
    operations: list[tuple[str, int]], crash_after: int, seed: int
) -> None:
    run = Run(operations, crash_after, seed)
    found = Journal(run.disk, at_once).load()
    prefixes = [after(run.issued[:n]) for n in range(run.acknowledged, len(run.issued) + 1)]
    assert found in prefixes


@given(OPERATIONS, st.integers(0, 2**32))
def test_without_a_crash_everything_is_there(operations: list[tuple[str, int]], seed: int) -> None:
    run = Run(operations, 10**9, seed)
    assert Journal(run.disk, at_once).load() == after(run.issued)
