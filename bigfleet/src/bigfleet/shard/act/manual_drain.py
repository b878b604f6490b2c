"""Drains on request: of a person, or of the coordinator on behalf of another shard.

No decision stands behind them, so none takes them back: the machine leaves, and its need is served
by another one. The caller is told the real outcome, so what a pause, a dry-run or a fence would
hold back is refused here, before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bigfleet.decision import ActionKind
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.model import Machine, MachineState
from bigfleet.shard.act.executor import Executor
from bigfleet.shard.act.rails import Rails
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order


@dataclass(frozen=True, slots=True)
class ManualDrains:
    """Takes such drains, or says why not."""

    shard_id: str
    book: Book
    executor: Executor
    rails: Rails
    cycle_number: Callable[[], int]

    def check_acting(self, provider: str) -> None:
        """NotActingError where nothing is done to this provider's machines now."""
        pause = self.rails.pause
        if pause.on:
            raise NotActingError(
                f"shard {self.shard_id!r} is paused ({pause.reason or 'no reason given'}) and "
                f"executes nothing: resume it first (bigfleetctl resume --shard {self.shard_id})"
            )
        if not self.rails.may_act():
            raise NotActingError(
                f"shard {self.shard_id!r} runs dry and executes nothing: restart it without "
                "--dry-run first"
            )
        if provider in self.executor.fenced:
            raise NotActingError(self.executor.not_ready)

    def drain(self, machine_id: str, reason: str, priority: int = 0) -> None:
        """The machine is on its way out when this returns, else DrainRefusedError."""
        machine = self.book.get(machine_id)
        if machine is None:
            raise DrainRefusedError(f"this shard has no machine {machine_id!r}")
        self.check_acting(machine.provider)
        if _is_certain_to_go(machine):
            return
        order = Order(
            kind=ActionKind.RECLAIM,
            machine=machine_id,
            provider=machine.provider,
            cluster=machine.cluster,
            grace_seconds=VOLUNTARY_GRACE_SECONDS,
            reason=reason,
            priority=priority,
            final=True,
        )
        accepted = self.executor.enqueue([order], self.cycle_number()).accepted
        self.book.begin(accepted)
        if not accepted:
            raise DrainRefusedError(self._why_not(machine, order))

    def _why_not(self, machine: Machine, order: Order) -> str:
        if machine.state is not MachineState.CONFIGURED:
            return f"machine {machine.id!r} is {machine.state.title}, not Configured"
        if machine.leaving is not None:
            return (
                f"machine {machine.id!r} is already draining, but the drain is cancelled if its "
                "need returns; exclude the machine to make the drain final"
            )
        if self.executor.failures.keep_off(order):
            return (
                f"machine {machine.id!r} is left alone for a while because the last thing done to "
                "it failed: try again later"
            )
        return f"something else is being done to {machine.id!r}: try again"


def _is_certain_to_go(machine: Machine) -> bool:
    """Whether it is in a grace that no decision calls off."""
    if machine.state is not MachineState.CONFIGURED or machine.leaving is None:
        return False
    return machine.leaving.final or machine.excluded or machine.reserved
