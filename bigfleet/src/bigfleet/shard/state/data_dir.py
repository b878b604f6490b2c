"""The parts of a shard that live in its data directory, read before anything is begun."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet.model import Stamp
from bigfleet.observe.process import Clock, Offload
from bigfleet.provider import ProviderSite
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.assignments import Assignments
from bigfleet.shard.state.departed_clusters import DepartedClusters
from bigfleet.shard.state.disk_health import DiskHealth
from bigfleet.shard.state.done_instructions import DoneInstructions
from bigfleet.shard.state.epoch import next_epoch
from bigfleet.shard.state.excluded_machines import ExcludedMachines
from bigfleet.shard.state.journal import Journal, JournalEntry
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet.shard.state.pause import Pause
from bigfleet.shard.state.restamps import Restamps
from bigfleet.shard.state.shard_id import take_directory


class DataDirectory:
    """What the files hold, each with the class that keeps it."""

    def __init__(
        self,
        shard_id: str,
        providers: tuple[ProviderSite, ...],
        disk: Disk,
        offload: Offload,
        show_pause: Callable[[bool], None],
    ) -> None:
        """`providers` are those of the settings; `show_pause` is told whether it is paused."""
        self.disk = disk = DiskHealth(disk)
        self._shard_id, self._offload = shard_id, offload
        self.epoch = 0
        self.entries: dict[str, JournalEntry] = {}
        self.stamps: dict[str, Stamp] = {}
        self.ownership = OwnershipFile(disk, offload)
        self.journal = Journal(disk, offload)
        self.restamps = Restamps(disk, offload)
        self.remembered = DoneInstructions(disk, offload)
        self.excluded = ExcludedMachines(disk, offload)
        self.forgotten = DepartedClusters(disk, offload)
        self.pause = Pause(disk, offload, show_pause)
        self.assignments = Assignments(shard_id, providers, disk, offload)

    async def read(self, clock: Clock, epoch: int | None) -> None:
        """Begin a new epoch, or the one that is given instead of the file's.

        An unreadable file is an error that says how to repair it.
        """
        await self._offload(lambda: self._read(clock, epoch))
        await self.pause.load()

    def _read(self, clock: Clock, epoch: int | None) -> None:
        take_directory(self.disk, self._shard_id)
        self.epoch = next_epoch(self.disk, clock.now(), epoch)
        self.ownership.load()
        self.entries = self.journal.load()
        self.stamps = self.restamps.load()
        self.remembered.load()
        self.excluded.load()
        self.forgotten.load()
        self.assignments.load()
