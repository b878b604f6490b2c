"""Becoming the leader, being it, losing it.

A replica campaigns all the time. When it wins it loads the state and reigns: soft state is empty,
and filled by the reports that come. When it loses the leadership, all of that is dropped and it
campaigns again. The store may be away at any point: then there is no leader, and nothing else is
wrong with this process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final, Protocol

from bigfleet.coordinator.errors import NotLeaderError
from bigfleet.coordinator.leadership.leader_state import LeaderCounts, LeaderState
from bigfleet.coordinator.state import FleetState
from bigfleet.coordinator.store.errors import StoreFullError, StoreUnavailableError
from bigfleet.coordinator.store.interface import (
    WRITE_SECONDS,
    Leader,
    Leadership,
    LoadedRows,
    StateStore,
)
from bigfleet.observe.process import Clock
from bigfleet.wire.backoff import Backoff

FIRST_RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 5.0
DUTY_RETRY_SECONDS: Final = 30.0
_PASSING: Final = (StoreUnavailableError, StoreFullError)
"""What an administrator fixes while this process waits."""
_log = logging.getLogger(__name__)

Duty = Callable[[LeaderState], Awaitable[None]]
"""What a leader does besides answering, for as long as it leads."""


class ElectionCounts(LeaderCounts, Protocol):
    """What is counted."""

    def leading(self, leads: bool) -> None:
        """Whether this replica leads."""

    def leader_known(self, known: bool) -> None:
        """Whether there is a leader."""

    def leader_changed(self, term: int) -> None:
        """There is another leader."""


class ElectionLoop:
    """One replica's part in the election. `leader_state` is set while it leads."""

    def __init__(
        self,
        replica: str,
        address: str,
        store: StateStore,
        clock: Clock,
        counts: ElectionCounts,
        duties: Sequence[Duty] = (),
    ) -> None:
        self.address = address
        """What others are told when this replica leads. Final once it runs."""
        self._replica, self._store = replica, store
        self._clock, self._counts, self._duties = clock, counts, tuple(duties)
        self._leader_state: LeaderState | None = None
        self._term = 0
        self._pauses = Backoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, Random(replica))

    def leader_state(self) -> LeaderState:
        """What this replica has while it leads; NotLeaderError otherwise."""
        leader_state = self._leader_state
        if leader_state is None:
            raise NotLeaderError(self._hint())
        leader_state.check()
        return leader_state

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads and has loaded the state."""
        return self._leader_state is not None and self._leader_state.leadership.holds()

    @property
    def has_leader(self) -> bool:
        """Whether some replica leads, as far as this one knows."""
        return self.is_leader or self._store.leader() is not None

    async def run(self) -> None:
        """Campaign and lead until cancelled; then let another replica lead."""
        await self._open()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._campaign())

    def _hint(self) -> str:
        """Who leads. Not this replica, which is still loading when it is asked."""
        leader = self._store.leader()
        return "" if leader is None or leader.address == self.address else leader.address

    async def _open(self) -> None:
        while True:
            try:
                await self._store.open()
            except _PASSING as error:
                await self._pause(error)
            else:
                self._pauses.reset()
                return

    async def _watch(self) -> None:
        async for leader in self._store.watch():
            self._seen(leader)

    def _seen(self, leader: Leader | None) -> None:
        self._counts.leader_known(leader is not None or self.is_leader)
        if leader is None or leader.term <= self._term:
            return
        if not self._term:
            _log.info(
                "raft membership established",
                extra={"id": self._replica, "term": leader.term, "leader": leader.address},
            )
        self._term = leader.term
        self._counts.leader_changed(leader.term)

    async def _campaign(self) -> None:
        while True:
            try:
                leadership = await self._store.campaign(self.address)
            except _PASSING as error:
                await self._pause(error)
                continue
            try:
                await self._lead(leadership)
            finally:
                await self._store.resign(leadership)

    async def _lead(self, leadership: Leadership) -> None:
        leader_state = await self._begin(leadership)
        if leader_state is None:
            return
        self._leader_state = leader_state
        self._counts.leading(True)
        self._seen(Leader(self.address, leadership.term))
        _log.info(
            "leading",
            extra={"id": self._replica, "term": leadership.term, **leader_state.state.entries()},
        )
        duties = [asyncio.create_task(self._serve(duty, leader_state)) for duty in self._duties]
        try:
            await leadership.lost.wait()
            _log.warning("leadership lost", extra={"id": self._replica, "term": leadership.term})
        finally:
            self._leader_state = None
            self._counts.leading(False)
            self._counts.leader_known(self.has_leader)
            # A follower has no state: the sum over replicas is the leader's.
            self._counts.shards({})
            self._counts.entries(FleetState().entries())
            for task in duties:
                task.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
            await leader_state.close()

    async def _begin(self, leadership: Leadership) -> LeaderState | None:
        """The leader state built from the stored rows; the rows themselves are released."""
        loaded = await self._load(leadership)
        if loaded is None:
            return None
        return LeaderState(leadership, loaded, self._store, self._clock, self._counts)

    async def _load(self, leadership: Leadership) -> LoadedRows | None:
        """All rows; None when the leadership was lost before they came."""
        while leadership.holds():
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    loaded = await self._store.load()
            except (StoreUnavailableError, TimeoutError) as error:
                await self._pause(error)
            else:
                self._pauses.reset()
                return loaded
        return None

    async def _serve(self, duty: Duty, leader_state: LeaderState) -> None:
        """A duty that fails is taken up again: nothing it does may end the process."""
        while leader_state.leadership.holds():
            try:
                await duty(leader_state)
                return
            except NotLeaderError:
                return
            except Exception:  # noqa: BLE001 - whatever it was, the leader still answers
                _log.exception("a leader's duty failed; it is taken up again")
            with suppress(TimeoutError):
                async with asyncio.timeout(DUTY_RETRY_SECONDS):
                    await leader_state.leadership.lost.wait()

    async def _pause(self, error: Exception) -> None:
        why = str(error) or "no answer in time"
        _log.warning("join attempt failed; will retry", extra={"id": self._replica, "error": why})
        await asyncio.sleep(self._pauses.next())
