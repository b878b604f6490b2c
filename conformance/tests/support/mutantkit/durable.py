"""Mutants of the store and of restarts (M092-M103, M120, M121, M135-M139)."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.config import Config
from reference.inventory import Slot
from reference.provider import FAILED, Call, Provider
from reference.reads import RefusedError
from reference.store import Fences, Store, StoreError

LATE_S = 5.0


class ForgetsMarks(Store):
    """Marks are not written."""

    def put_fence(self, shard: str, machine: str, mark: tuple[int, int]) -> None:
        return


@broken("M092")
class MarksNotStored(Provider):
    store_type = ForgetsMarks


@broken("M093")
class MarksMerged(Provider):
    def load_fences(self, fences: Fences) -> None:
        highest: dict[str, tuple[int, int]] = {}
        for (shard, _), mark in fences.items():
            highest[shard] = max(mark, highest.get(shard, mark))
        super().load_fences({key: highest[key[0]] for key in fences})


class ForgetsOperations(Store):
    """Operation ids are not written."""

    def slots(self) -> list[Slot]:
        found = super().slots()
        for slot in found:
            slot.operations = {}
        return found


@broken("M094")
class OperationsNotStored(Provider):
    store_type = ForgetsOperations


class ForgetsMetadata(Store):
    """Metadata is not written."""

    def slots(self) -> list[Slot]:
        found = super().slots()
        for slot in found:
            slot.record.shard_metadata.clear()
        return found


@broken("M095")
class MetadataNotStored(Provider):
    store_type = ForgetsMetadata


class ForgetsCounter(Store):
    """The counter of operation ids is not written."""

    def put_meta(self, key: str, value: str) -> None:
        if key != "counter":
            super().put_meta(key, value)


@broken("M096")
class CounterNotStored(Provider):
    store_type = ForgetsCounter


@broken("M097")
class WorkLeftInFlight(Provider):
    def resume(self, slot: Slot) -> None:
        return


class SeedsAlways(Store):
    """Every boot starts with nothing but its name."""

    def slots(self) -> list[Slot]:
        return []


@broken("M098")
class SeedsAgain(Provider):
    store_type = SeedsAlways


@broken("M099")
class UnknownShardRefused(Provider):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.known = None if self.store.fresh else {shard for shard, _ in self.fences}

    def fence(self, call: Call) -> pb.TransitionAck | None:
        shard = call.request.shard_id
        if self.known is not None and shard not in self.known and shard.endswith("durB"):
            raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "who are you?")
        return super().fence(call)


class WritesLate(Store):
    """Writes wait for five seconds; a crash loses what waits."""

    def late(self, write: Callable[[], None]) -> None:
        try:
            asyncio.get_running_loop().call_later(LATE_S, write)
        except RuntimeError:
            write()

    def put(self, slot: Slot) -> None:
        if slot.operations:
            self.late(lambda: Store.put(self, slot))
        else:
            super().put(slot)

    def put_fence(self, shard: str, machine: str, mark: tuple[int, int]) -> None:
        self.late(lambda: Store.put_fence(self, shard, machine, mark))


@broken("M100")
class StateWrittenLate(Provider):
    store_type = WritesLate


class Unlocked(Store):
    """Anybody may come in."""

    def lock(self, path: Path) -> None:
        return


@broken("M101")
class NoLock(Provider):
    store_type = Unlocked


class StartsEmpty(Store):
    """A damaged file is replaced by a new one."""

    def connect(self, path: Path) -> None:
        try:
            super().connect(path)
        except sqlite3.DatabaseError:
            self.begin_again(path)

    def slots(self) -> list[Slot]:
        try:
            return super().slots()
        except (StoreError, sqlite3.DatabaseError):
            assert self.path is not None
            self.begin_again(self.path)
            return []

    def begin_again(self, path: Path) -> None:
        """Throw the file away."""
        if self.database is not None:
            self.database.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        self.fresh = True
        super().connect(path)


@broken("M102")
class DamagedStartsEmpty(Provider):
    store_type = StartsEmpty


@broken("M103")
class ChangesLostToDeltas(Provider):
    def load(self) -> None:
        super().load()
        if not self.store.fresh:
            for slot in self.inventory.slots.values():
                slot.revision = 1


class ForgetsHosts(Store):
    """Hosts are looked up again after a start, and get another name."""

    def slots(self) -> list[Slot]:
        found = super().slots()
        for slot in found:
            if slot.record.host.ref:
                slot.record.host.ref += "-again"
        return found


@broken("M120")
class HostsNotStored(Provider):
    store_type = ForgetsHosts


class KeepsMarksForLater(Store):
    """A mark is written with the work that it allowed, if there is any."""

    waiting: tuple[str, str, tuple[int, int]] | None = None

    def put_fence(self, shard: str, machine: str, mark: tuple[int, int]) -> None:
        self.waiting = (shard, machine, mark)

    def write_waiting(self) -> None:
        if self.waiting is not None:
            super().put_fence(*self.waiting)


@broken("M121")
class MarkStoredWithWork(Provider):
    store_type = KeepsMarksForLater

    async def accept(self, call: Call) -> pb.TransitionAck:
        assert isinstance(self.store, KeepsMarksForLater)
        self.store.write_waiting()
        return await super().accept(call)


class SpoilsFailed(Provider):
    """FAILED machines are not what they were after a start."""

    def load(self) -> None:
        super().load()
        for slot in list(self.inventory.slots.values()):
            if slot.record.state == FAILED:
                self.spoil(slot)

    def spoil(self, slot: Slot) -> None:
        """The one thing that is wrong."""


@broken("M135")
class RestartRewritesReason(SpoilsFailed):
    def spoil(self, slot: Slot) -> None:
        slot.record.last_error = "Interrupted: the provider was started again"


@broken("M136")
class FailedHostNotStored(SpoilsFailed):
    def spoil(self, slot: Slot) -> None:
        slot.record.ClearField("host")


@broken("M137")
class FailedBindingNotStored(SpoilsFailed):
    def spoil(self, slot: Slot) -> None:
        self.unbind(slot)


@broken("M138")
class RestartFreesFailed(SpoilsFailed):
    def spoil(self, slot: Slot) -> None:
        self.heal(slot)


@broken("M139")
class FailsAnewAfterRestart(Provider):
    def look(self, slot: Slot) -> None:
        if slot.record.state == FAILED and not self.store.fresh:
            self.fail(slot, "HostLost: not found at the first look")
        super().look(slot)
