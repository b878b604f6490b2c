"""Writes UpcomingNodes: the newest state of each machine, several machines at once.

Frames are only noted when they arrive; of a machine that changes faster than the API server
answers, the states in between are never written. What could not be written is tried again, with
growing pauses. A machine of which a session has not spoken for a long while, and which has no node,
is one that went while no session was open: its object goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Final, Protocol

from bigfleet.kube import (
    AlreadyExistsError,
    Change,
    ConflictError,
    KubeClient,
    KubeError,
    NotFoundError,
)
from bigfleet.kube.fleet import UPCOMING_NODES, UpcomingNode
from bigfleet.observe.process import Clock
from bigfleet.operator.machines.node_state import (
    MACHINE_ID,
    MachineNodeState,
    Phase,
    after_update,
    as_written,
)
from bigfleet.wire.backoff import Backoff
from bigfleet_api.v1alpha1 import shard_pb2 as pb

MANAGER: Final = "bigfleet-operator"
FORGET_SECONDS: Final = 600.0
"""How long a session may be silent about a machine before its object goes."""
_log = logging.getLogger(__name__)


class UpcomingNodeMetrics(Protocol):
    """What is counted."""

    def upcoming_node_written(self, op: str, outcome: str, seconds: float) -> None:
        """One write ended."""

    def node_state_updated(self, phase: str, seconds: float) -> None:
        """From a frame to what it led to."""


class UpcomingNodeWriter:
    """The machines of this cluster, and their objects."""

    def __init__(
        self,
        client: KubeClient,
        clock: Clock,
        counts: UpcomingNodeMetrics,
        rng: Random,
        concurrency: int = 16,
    ) -> None:
        self._client, self._clock, self._counts, self._rng = client, clock, counts, rng
        self._known: dict[str, MachineNodeState] = {}
        """As they are written, or about to be."""
        self._written: dict[str, MachineNodeState] = {}
        """As the API server has them."""
        self._waiting: dict[str, float] = {}
        """Machines to be written, since when."""
        self._withdrawn: set[str] = set()
        self._busy: set[str] = set()
        self._spoken: set[str] = set()
        """Machines of which this session spoke."""
        self._backoffs: dict[str, Backoff] = {}
        self._bell = asyncio.Event()
        self._concurrency = concurrency
        self._writing = False
        self.on_change: list[Callable[[str], None]] = []
        """Told of machines of which something else is known now."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, machine_id: str) -> MachineNodeState | None:
        """A machine as it is known."""
        return self._known.get(machine_id)

    def all(self) -> list[MachineNodeState]:
        """Every machine that is known."""
        return list(self._known.values())

    # -- what comes in ---------------------------------------------------------------------------

    def seen(self, change: Change[UpcomingNode]) -> None:
        """An object of the cluster came, changed or went."""
        found = change.new or change.old
        machine_id = found.metadata.annotations.get(MACHINE_ID, "") if found else ""
        if not machine_id:
            return
        if change.new is None:
            self._written.pop(machine_id, None)
            if not self._writing:
                self._known.pop(machine_id, None)
                self._tell(machine_id)
            elif machine_id in self._known and machine_id not in self._withdrawn:
                # A person deleted the view of a machine that is still there.
                self._queue(machine_id)
            return
        written = as_written(change.new)
        if written is not None and machine_id not in self._busy:
            self._written[machine_id] = written
            if machine_id not in self._known or not self._writing:
                self._known[machine_id] = written
                self._tell(machine_id)
            elif written != self._known[machine_id] and machine_id not in self._withdrawn:
                # Another client changed it, or what we wrote is not what we thought.
                self._queue(machine_id)

    def hear(self, update: pb.NodeStateUpdate) -> None:
        """A frame of the shard."""
        machine_id = update.machine_id
        self._spoken.add(machine_id)
        known = after_update(self._known.get(machine_id), update, self._clock.now())
        self._known[machine_id] = known
        if update.withdrawn or known.phase is Phase.DRAINED:
            self._withdrawn.add(machine_id)
        else:
            self._withdrawn.discard(machine_id)
        self._queue(machine_id)
        self._tell(machine_id)

    def named(self, machine_id: str, node_name: str) -> None:
        """The node of a machine was seen."""
        known = self._known.get(machine_id)
        if known is not None and known.node_name != node_name:
            self._known[machine_id] = replace(known, node_name=node_name)
            self._queue(machine_id)
            self._tell(machine_id)

    def session_opened(self) -> None:
        """The shard will speak of every machine it has for this cluster."""
        self._spoken.clear()

    def forget_silent(self, has_node: Callable[[MachineNodeState], bool]) -> None:
        """This session has lasted: what it never spoke of is gone, unless its node is there."""
        for machine_id, known in list(self._known.items()):
            if machine_id not in self._spoken and not has_node(known):
                self._withdrawn.add(machine_id)
                self._queue(machine_id)

    # -- writing ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write until cancelled. Otherwise what is known follows what another replica writes."""
        self._writing = True
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._concurrency):
                    group.create_task(self._work())
        finally:
            self._writing = False
            self._waiting.clear()
            self._withdrawn.clear()
            self._known = dict(self._written)

    @property
    def waiting(self) -> int:
        """Machines whose newest state is not written yet."""
        return len(self._waiting) + len(self._busy)

    def _queue(self, machine_id: str, since: float | None = None) -> None:
        began = self._clock.monotonic() if since is None else since
        self._waiting.setdefault(machine_id, began)
        self._bell.set()

    def _tell(self, machine_id: str) -> None:
        for listener in self.on_change:
            listener(machine_id)

    async def _work(self) -> None:
        while True:
            machine_id = self._next()
            if machine_id is None:
                self._bell.clear()
                await self._bell.wait()
                continue
            since = self._waiting.pop(machine_id)
            self._busy.add(machine_id)
            try:
                await self._settle(machine_id, since)
            finally:
                self._busy.discard(machine_id)
                if machine_id in self._waiting:
                    self._bell.set()

    def _next(self) -> str | None:
        return next((machine for machine in self._waiting if machine not in self._busy), None)

    async def _settle(self, machine_id: str, since: float) -> None:
        known = self._known.get(machine_id)
        if known is None:
            return
        try:
            await self._write(known, withdrawn=machine_id in self._withdrawn)
        except KubeError as error:
            _log.warning(
                "UpcomingNode not written",
                extra={"machine": machine_id, "phase": known.phase, "error": str(error)},
            )
            # Waiting happens outside of the workers: one bad machine must not hold up the others.
            backoff = self._backoffs.setdefault(
                machine_id, Backoff(first=0.2, longest=15.0, chance=self._rng)
            )
            loop = asyncio.get_running_loop()
            loop.call_later(backoff.next(), self._queue, machine_id, since)
            return
        self._backoffs.pop(machine_id, None)
        self._counts.node_state_updated(known.phase.value, self._clock.monotonic() - since)

    async def _write(self, known: MachineNodeState, *, withdrawn: bool) -> None:
        machine_id, name = known.machine_id, known.name
        if withdrawn:
            await self._timed("delete", lambda: self._delete(machine_id, name))
            if machine_id in self._withdrawn:
                self._withdrawn.discard(machine_id)
                self._known.pop(machine_id, None)
                self._tell(machine_id)
            self._written.pop(machine_id, None)
            return
        written = self._written.get(machine_id)
        if written is None or written.spec_body() != known.spec_body():
            op = "create" if written is None else "spec_update"
            await self._timed(op, lambda: self._apply(name, known.spec_body()))
        if written is None or written.status_body() != known.status_body():
            await self._timed(
                "status_update", lambda: self._apply(name, known.status_body(), "status")
            )
        elif written == known:
            self._counts.upcoming_node_written("status_update", "noop", 0.0)
        self._written[machine_id] = known

    async def _apply(self, name: str, body: dict[str, object], subresource: str = "") -> None:
        try:
            await self._client.apply(
                UPCOMING_NODES, name, body, manager=MANAGER, subresource=subresource
            )
        except NotFoundError:
            # Its object was deleted under our hands; it is made again.
            self._written = {m: w for m, w in self._written.items() if w.name != name}
            raise

    async def _delete(self, machine_id: str, name: str) -> None:
        if machine_id in self._written or self._known.get(machine_id) is not None:
            await self._client.delete(UPCOMING_NODES, name)

    async def _timed(self, op: str, write: Callable[[], Awaitable[None]]) -> None:
        began = self._clock.monotonic()
        outcome = "error"
        try:
            await write()
            outcome = "success"
        except (ConflictError, AlreadyExistsError):
            outcome = "conflict"
            raise
        finally:
            seconds = self._clock.monotonic() - began
            self._counts.upcoming_node_written(op, outcome, seconds)
