"""The parts of a shard that live in its data directory, read before anything is begun."""

from __future__ import annotations

from bigfleet.model import Stamp
from bigfleet.observe.shard import ShardMetrics
from bigfleet.shard.assignments import Assignments
from bigfleet.shard.coordination import Remembered
from bigfleet.shard.directory import take_directory
from bigfleet.shard.excluded import Excluded
from bigfleet.shard.execute.rails import Pause
from bigfleet.shard.forgotten import Forgotten
from bigfleet.shard.ports import Clock, Disk, Offload, steady
from bigfleet.shard.reconcile.epoch import next_epoch
from bigfleet.shard.reconcile.journal import Entry, Journal
from bigfleet.shard.reconcile.ownership import Ownership
from bigfleet.shard.reconcile.restamps import Restamps
from bigfleet.shard.tuning import Tuning


class Loaded:
    """What the files hold, each in the hands of whoever keeps it."""

    def __init__(
        self, tuning: Tuning, clock: Clock, disk: Disk, offload: Offload, version: str
    ) -> None:
        self._tuning, self._clock, self._disk, self._offload = tuning, clock, disk, offload
        self.epoch = 0
        self.metrics = ShardMetrics(
            steady(clock), version=version, warmup_cycles=tuning.metrics_warmup_cycles
        )
        self.entries: dict[str, Entry] = {}
        self.stamps: dict[str, Stamp] = {}
        self.ownership = Ownership(disk, offload)
        self.journal = Journal(disk, offload)
        self.restamps = Restamps(disk, offload)
        self.remembered = Remembered(disk, offload)
        self.excluded = Excluded(disk, offload)
        self.forgotten = Forgotten(disk, offload)
        self.pause = Pause(disk, offload, self.metrics)
        self.assignments = Assignments(tuning.shard_id, tuning.providers, disk, offload)

    async def read(self) -> None:
        """Begin a new epoch; an unreadable file is an error that says how to repair it."""
        await self._offload(self._read)
        await self.pause.load()

    def _read(self) -> None:
        take_directory(self._disk, self._tuning.shard_id)
        self.epoch = next_epoch(self._disk, self._clock.now(), self._tuning.epoch)
        self.ownership.load()
        self.entries = self.journal.load()
        self.stamps = self.restamps.load()
        self.remembered.load()
        self.excluded.load()
        self.forgotten.load()
        self.assignments.load()
