"""Machines that were drained for another shard and are kept for it.

They are out of this shard's decisions until they are given, until their drain came to nothing, or
until the promise is over because they were not fetched. A restart does not end a promise: it stands
with the instruction in the file of what was done. Nothing here drains or gives anything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from bigfleet.model import Machine, MachineState
from bigfleet.observe.process import Clock

PROMISE_SECONDS: Final = 1_800.0
"""How long a machine drained for another shard is kept for it."""
_NS: Final = 1_000_000_000
_log = logging.getLogger(__name__)


class ReservableMachines(Protocol):
    """The part of the book that promises need."""

    def get(self, machine_id: str) -> Machine | None:
        """A machine of this shard."""

    def reserve(self, machine_id: str, reserved: bool) -> object:
        """Keep it for another shard, or end that."""


class Promises:
    """What this shard keeps for others."""

    def __init__(
        self, machines: ReservableMachines, clock: Clock, before: Mapping[str, int]
    ) -> None:
        """`before` is what another life promised, until when in Unix nanoseconds."""
        self._machines, self._clock = machines, clock
        self._until: dict[str, float] = {}
        self._before = dict(before)

    def __contains__(self, machine_id: object) -> bool:
        return machine_id in self._until

    def make(self, machine_ids: Iterable[str]) -> int:
        """Keep these from now on; until when, in Unix nanoseconds."""
        for machine_id in machine_ids:
            self._keep(machine_id, PROMISE_SECONDS)
        return self._clock.now() + int(PROMISE_SECONDS * _NS)

    def __iter__(self) -> Iterator[str]:
        return iter(self._until)

    def fulfil(self, machine_id: str) -> None:
        """It is given to whom it was promised."""
        self._until.pop(machine_id, None)

    def seen(self, before: Machine | None, after: Machine | None) -> None:
        """A machine changed: one that is seen for the first time may be promised already."""
        if before is not None or after is None or after.id not in self._before:
            return
        left = (self._before.pop(after.id) - self._clock.now()) / _NS
        if left > 0:
            self._keep(after.id, min(left, PROMISE_SECONDS))

    def expire(self) -> None:
        """Machines that were not fetched, or that stay after all, are this shard's to use again."""
        now = self._clock.monotonic()
        for machine_id, until in list(self._until.items()):
            known = self._machines.get(machine_id)
            stays = known is not None and _stays(known)
            if known is not None and not stays and until > now:
                continue
            del self._until[machine_id]
            if stays:
                _log.warning(
                    "drain for another shard failed; machine released from its reservation",
                    extra={"machine": machine_id},
                )
            if known is not None:
                self._machines.reserve(machine_id, False)

    def _keep(self, machine_id: str, seconds: float) -> None:
        known = self._machines.get(machine_id)
        if known is not None:
            self._until[machine_id] = self._clock.monotonic() + seconds
            self._machines.reserve(machine_id, True)


def _stays(machine: Machine) -> bool:
    return machine.state is MachineState.CONFIGURED and machine.leaving is None
