"""Machines in their grace: told to leave, their Drain not yet sent.

One heap and one task for all of them, so that nothing waits in a worker. A grace ends when the
operator says that the node is empty or could not be emptied (its second ack), when its time is
over, or when it is called off. What is due is handed on; what cannot be taken now comes again a
little later. Deadlines are kept by the monotonic clock; the wall clock is only for the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bigfleet.observe.process import Clock
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.operators.messages import Instruction

AGAIN_SECONDS: Final = 1.0
"""When a due machine could not be handed on: how long until it is tried again."""


@dataclass(frozen=True, slots=True)
class PendingDrain:
    """One machine on its way out."""

    order: Order
    instruction_id: str
    node: str
    deadline: float
    """By the monotonic clock."""
    since: float | None = None
    """When it was told to leave; None when that was before a restart."""
    cycle: int = 0

    @property
    def machine(self) -> str:
        """Whose grace it is."""
        return self.order.machine

    def cancelled(self) -> Instruction:
        """What calls it off at the operator."""
        return Instruction(self.instruction_id, self.node, 0, cancel=True)


class PendingDrains:
    """The book of graces. `hand_on` says whether it took the machine."""

    def __init__(self, clock: Clock, hand_on: Callable[[PendingDrain], bool]) -> None:
        self._clock = clock
        self._hand_on = hand_on
        self._drains_by_machine: dict[str, PendingDrain] = {}
        self._by_instruction: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._numbers = itertools.count()
        self._sooner = asyncio.Event()

    def __len__(self) -> int:
        return len(self._drains_by_machine)

    def __iter__(self) -> Iterator[PendingDrain]:
        return iter(list(self._drains_by_machine.values()))

    def get(self, machine_id: str) -> PendingDrain | None:
        """A machine's grace."""
        return self._drains_by_machine.get(machine_id)

    def left(self, pending: PendingDrain) -> int:
        """Whole seconds a machine has left, rounded up."""
        return max(0, math.ceil(pending.deadline - self._clock.monotonic()))

    def note(self, pending: PendingDrain) -> None:
        """Know of a grace without waiting for its end: its Drain is under way."""
        self.remove(pending.machine)
        self._drains_by_machine[pending.machine] = pending
        self._by_instruction[pending.instruction_id] = pending.machine

    def add(self, pending: PendingDrain) -> None:
        """Wait for the end of a grace."""
        self.note(pending)
        self._schedule(pending.machine, pending.deadline)

    def remove(self, machine_id: str) -> PendingDrain | None:
        """It is over or called off."""
        pending = self._drains_by_machine.pop(machine_id, None)
        self._due.pop(machine_id, None)
        if pending is not None:
            self._by_instruction.pop(pending.instruction_id, None)
        return pending

    def again(self, machine_id: str, seconds: float) -> None:
        """Its Drain did not happen: try once more after a while."""
        if machine_id in self._drains_by_machine:
            self._schedule(machine_id, self._clock.monotonic() + seconds)

    def acknowledged(
        self, cluster: str, instruction_id: str, second: bool, left: tuple[str, ...] = ()
    ) -> None:
        """An operator answered. The second answer ends the grace, whatever is left on the node."""
        machine_id = self._by_instruction.get(instruction_id)
        if not second or machine_id is None or machine_id not in self._due:
            return
        if self._drains_by_machine[machine_id].order.cluster == cluster:
            self._schedule(machine_id, self._clock.monotonic())

    async def run(self) -> None:
        """Hand on what is due, until cancelled."""
        while True:
            wait = self._hand_on_due()
            self._sooner.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._sooner.wait()

    def _hand_on_due(self) -> float | None:
        """Seconds until the next is due; None when there is none."""
        while self._heap:
            at, _, machine_id = self._heap[0]
            if self._due.get(machine_id) != at:
                heapq.heappop(self._heap)
                continue
            now = self._clock.monotonic()
            if at > now:
                return at - now
            heapq.heappop(self._heap)
            del self._due[machine_id]
            if not self._hand_on(self._drains_by_machine[machine_id]):
                self.again(machine_id, AGAIN_SECONDS)
        return None

    def _schedule(self, machine_id: str, at: float) -> None:
        self._due[machine_id] = at
        entry = (at, next(self._numbers), machine_id)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._sooner.set()
