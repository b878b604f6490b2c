"""One leadership: the state as loaded, the soft state beside it, and the one way to write.

Writes go one after the other. A command is checked against the tables, written to the store with
the revision and the leadership, and then taken into the tables; what follows from it in soft state
happens in the same step. A write whose fate is not known makes the next one load everything again.
A caller that goes away does not stop a write half-way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from bigfleet.coordinator.errors import NotLeaderError, WriteFailedError
from bigfleet.coordinator.reports.assignments import AssignmentTable
from bigfleet.coordinator.reports.instructions import InstructionQueue
from bigfleet.coordinator.reports.report_cache import ReportCache
from bigfleet.coordinator.state import (
    AssignDomain,
    Changes,
    Command,
    CorruptRowError,
    FleetState,
    RefusalError,
    RemoveShard,
    UnassignDomain,
    apply,
    rows_of,
    state_of,
)
from bigfleet.coordinator.store.errors import DeposedError, StoreConflictError, StoreError
from bigfleet.coordinator.store.interface import WRITE_SECONDS, Leadership, LoadedRows, StateStore
from bigfleet.observe.process import Clock
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

_ATTEMPTS: Final = 3
"""A conflict means that an earlier write of unknown fate arrived late; that does not go on."""
_log = logging.getLogger(__name__)


class LeaderCounts(Protocol):
    """What is counted."""

    def applied(self, outcome: str) -> None:
        """success, error or fsm_error."""

    def entries(self, tables: Mapping[str, int]) -> None:
        """Rows of each table."""

    def shards(self, registered: Mapping[str, object]) -> None:
        """Who is registered."""

    def pending_instructions(self, shard: str, count: int) -> None:
        """So many wait."""


class LeaderState:
    """What a leader has, from loading the state until the leadership is lost."""

    def __init__(
        self,
        leadership: Leadership,
        loaded: LoadedRows,
        store: StateStore,
        clock: Clock,
        counts: LeaderCounts,
    ) -> None:
        self.leadership = leadership
        self.clock = clock
        self.state: FleetState = state_of(loaded.rows)
        self.reports = ReportCache()
        self.instructions = InstructionQueue(
            leadership.term, clock.now, counts.pending_instructions
        )
        self.assignments = AssignmentTable(self.state)
        self.complained: set[tuple[str, str, str]] = set()
        """Clusters seen where they do not belong, told once: cluster, shard, its real shard."""
        self._store, self._counts = store, counts
        self._revision = loaded.revision
        self._unsure = False
        self._lock = asyncio.Lock()
        self._writes: set[asyncio.Task[Changes]] = set()
        self._show()

    @property
    def term(self) -> int:
        """The fencing term of this leadership."""
        return self.leadership.term

    def check(self) -> None:
        """NotLeaderError once the leadership is over."""
        if not self.leadership.holds():
            leader = self._store.leader()
            is_other = leader is not None and leader.term > self.term
            raise NotLeaderError(leader.address if leader is not None and is_other else "")

    async def apply(self, command: Command) -> Changes:
        """Carry a command out; what it changed.

        RefusalError: a rule says no. WriteFailedError: the store did not take it in time.
        NotLeaderError: the leadership is over, and nothing was written.
        """
        until = self.clock.monotonic() + WRITE_SECONDS
        write = asyncio.create_task(self._write(command, until))
        self._writes.add(write)
        write.add_done_callback(self._written)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                return await asyncio.shield(write)
        except TimeoutError:
            raise _no_answer() from None
        except asyncio.CancelledError:
            if write.cancelled():
                # The leadership ended, not the caller; the store may have written it all the same.
                raise WriteFailedError(
                    "the leadership ended before the store answered: ask again"
                ) from None
            raise

    async def close(self) -> None:
        """Let writes under way end. After the leadership is lost they cannot do harm."""
        for write in self._writes:
            write.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)

    def _written(self, write: asyncio.Task[Changes]) -> None:
        self._writes.discard(write)
        if not write.cancelled():
            # Looked at here as well, because its caller may have gone.
            write.exception()

    async def _write(self, command: Command, until: float) -> Changes:
        async with self._lock:
            for _ in range(_ATTEMPTS):
                if self.clock.monotonic() >= until:
                    # It waited behind others, and its caller has given up.
                    break
                self.check()
                if self._unsure:
                    await self._load()
                changes = self._changes(command)
                if not changes:
                    return changes
                if await self._commit(changes):
                    self._follow(command, changes)
                    return changes
        raise _no_answer()

    def _changes(self, command: Command) -> Changes:
        try:
            return apply(self.state, command, self.clock.now())
        except RefusalError:
            self._counts.applied("fsm_error")
            raise

    async def _commit(self, changes: Changes) -> bool:
        """Whether it is written; False for a conflict, after which everything is loaded again."""
        puts, deletes = rows_of(changes)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                self._revision = await self._store.commit(
                    puts, deletes, self._revision, self.leadership
                )
        except StoreConflictError as error:
            self._unsure = True
            self._counts.applied("error")
            _log.warning("another process changed the state: %s", error)
            return False
        except DeposedError as error:
            self._counts.applied("error")
            self.leadership.lost.set()
            self.check()
            raise NotLeaderError from error
        except (StoreError, TimeoutError) as error:
            self._unsure = True
            self._counts.applied("error")
            why = str(error) or "no answer in time"
            _log.warning("the store refused a write: %s", why)
            raise WriteFailedError(f"the store did not take the write: {why}") from error
        except BaseException:
            self._unsure = True
            raise
        self._counts.applied("success")
        return True

    async def _load(self) -> None:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                loaded = await self._store.load()
            self.state.become(state_of(loaded.rows))
        except (StoreError, TimeoutError, CorruptRowError) as error:
            raise WriteFailedError(f"the store cannot be read: {error}") from error
        self._revision = loaded.revision
        self._unsure = False
        self.reports.keep(self.state.shards)
        self.instructions.keep(self.state.shards)
        self._show()

    def _follow(self, command: Command, changes: Changes) -> None:
        """What a write means for tables and soft state."""
        match command:
            case RemoveShard(shard_id):
                self.reports.forget(shard_id)
                self.instructions.forget(shard_id)
                self.complained = {one for one in self.complained if shard_id not in one[1:]}
            case AssignDomain(key, value, shard_id):
                self.instructions.give(
                    shard_id,
                    pb.AssignDomain(topology_key=key, topology_value=value),
                    about=f"domain {key}={value}",
                )
            case UnassignDomain(key, value):
                self.instructions.give(
                    self.state.domains[key, value],
                    pb.UnassignDomain(topology_key=key, topology_value=value),
                    about=f"domain {key}={value}",
                )
            case _:
                pass
        self.state.take(changes)
        self._show()

    def _show(self) -> None:
        self._counts.entries(self.state.entries())
        self._counts.shards(self.state.shards)


def _no_answer() -> WriteFailedError:
    return WriteFailedError(f"the store did not answer within {WRITE_SECONDS:g} s: try again")
