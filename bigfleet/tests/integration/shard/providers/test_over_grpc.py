"""Reconciling with the fake provider over real connections, threads and a real disk."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

from bigfleet.model import Machine, MachineState, PenaltyBucket, Stamp
from bigfleet.model.columns import Symbols
from bigfleet.observe.process import SystemClock, Threads
from bigfleet.provider import ProviderClient, Providers, ProviderSite
from bigfleet.shard.machines.book import Book
from bigfleet.shard.providers.answers import MergeSummary
from bigfleet.shard.providers.lister import Lister
from bigfleet.shard.state.disk import LocalDisk
from bigfleet.shard.state.epoch import next_epoch
from bigfleet.shard.state.journal import Journal, JournalEntry
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet.wire.fencing import FencingStamps
from bigfleet.wire.machines import metadata_from_stamp
from bigfleet_lab.fake import FakeProvider

S = MachineState
STAMP = Stamp("c-1", "shape", "", "print", 100, PenaltyBucket.ZERO, PenaltyBucket.ZERO, 7)


class Shard:
    """The reconciling part of a shard as a process has it."""

    def __init__(self, data: Path, site: ProviderSite) -> None:
        clock, disk = SystemClock(), LocalDisk(data)
        self.threads = Threads("test", 2)
        self.site = site
        self.stamps = FencingStamps("shard-a", next_epoch(disk, clock.now()))
        self.calls: list[tuple[str, str]] = []
        self.providers = Providers(self._dial)
        self.book = Book(Symbols(), clock)
        self.journal = Journal(disk, self.threads)
        ownership = OwnershipFile(disk, self.threads)
        ownership.load()
        self.arrived = asyncio.Event()
        self.lister = Lister(
            self.book, self.providers, ownership, self.journal, clock, self.threads, Random(1),
            interval=0.05, remembered=self.journal.load(), on_arrival=self.arrived.set, page=20,
        )  # fmt: skip
        self.total = MergeSummary()

    def _dial(self, site: ProviderSite) -> ProviderClient:
        def watch(provider: str, method: str, code: str, seconds: float) -> None:
            self.calls.append((method, code))

        return ProviderClient.dial(site, self.stamps, watch=watch)

    @property
    def client(self) -> ProviderClient:
        """The provider."""
        return self.providers[self.site.name]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Merge what arrives until something is so."""
        async with asyncio.timeout(20):
            while not condition():
                self.arrived.clear()
                merged = await self.lister.merge()
                self.total.losses += merged.losses
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await self.arrived.wait()

    def known(self, name: str) -> Machine:
        """A machine of the book."""
        found = self.book.get(name)
        assert found is not None
        return found


@asynccontextmanager
async def running(data: Path, site: ProviderSite) -> AsyncIterator[Shard]:
    shard = Shard(data, site)
    await shard.providers.use([site])
    tasks = [asyncio.create_task(shard.lister.run()), asyncio.create_task(shard.journal.run())]
    try:
        yield shard
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await shard.providers.close()
        shard.threads.close()


async def test_a_machine_is_followed_through_its_life_and_across_a_restart(tmp_path: Path) -> None:
    async with await FakeProvider.start(listen=True, seed_count=50) as fake:
        async with running(tmp_path, fake.site) as shard:
            await shard.until(lambda: shard.lister.first_merged("fake"))
            assert len(shard.book) == 50
            assert shard.calls[0] == ("List", "OK")
            name = shard.book.id_of(0)
            await shard.journal.remember(name, JournalEntry(STAMP))
            shard.book.start(name, S.CREATING, stamp=STAMP)
            await shard.client.create(name)
            await shard.until(lambda: shard.known(name).state is S.IDLE)
            assert shard.known(name).stamp == STAMP
        async with running(tmp_path, fake.site) as shard:
            await shard.until(lambda: shard.lister.first_merged("fake"))
            assert shard.known(name).stamp == STAMP
            shard.book.start(name, S.CONFIGURING, "c-1", STAMP)
            await shard.client.configure(name, "c-1", b"join", metadata_from_stamp(STAMP))
            await shard.until(lambda: shard.known(name).state is S.CONFIGURED)
            await shard.until(lambda: not shard.journal.knows(name))
            leaving = JournalEntry(leaving=True, deadline_ns=5, instruction_id="i-1")
            await shard.journal.remember(name, leaving)
        async with running(tmp_path, fake.site) as shard:
            await shard.until(lambda: shard.lister.first_merged("fake"))
            assert shard.known(name).stamp == STAMP
            assert shard.known(name).leaving is not None
            await fake.lose(name)
            await shard.until(lambda: shard.known(name).state is S.FAILED)
            assert [machine.id for machine in shard.total.losses] == [name]


async def test_a_provider_that_dies_is_asked_again_and_nothing_is_lost_meanwhile(
    tmp_path: Path,
) -> None:
    state = str(tmp_path / "provider.db")
    first = await FakeProvider.start(listen=True, seed_count=30, state=state)
    async with running(tmp_path, first.site) as shard:
        await shard.until(lambda: shard.lister.first_merged("fake"))
        await first.crash()
        await shard.until(lambda: not shard.lister.status()[0].reachable)
        assert len(shard.book) == 30
        again = FakeProvider.start(listen=True, seed_count=30, state=state, addr=first.site.address)
        async with await again:
            await shard.until(lambda: shard.lister.status()[0].reachable)
            assert len(shard.book) == 30
            assert shard.lister.status()[0].last_error == ""
