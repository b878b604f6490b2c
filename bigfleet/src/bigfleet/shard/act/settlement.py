"""What an action's end means: one outcome, the book set right, what to keep off and for how long.

An action that fails takes its machine back to where it was. Where the provider was called and may
or may not have done it, it is asked once before the machine is let go, so that the book does not
count a machine as free that is being made; where that does not help, the lister looks soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import grpc

from bigfleet.decision import ActionKind
from bigfleet.model import Departure, IllegalMoveError, Machine, MachineError, MachineState
from bigfleet.provider import FencedError, ProviderError
from bigfleet.shard.act.actions import ActionContext, ActionSteps
from bigfleet.shard.act.attempts import Attempt, Truth
from bigfleet.shard.act.backoff import BackoffTable
from bigfleet.shard.act.outcomes import ActionFailedError, ExecutionOutcome
from bigfleet.shard.act.pending_drains import AGAIN_SECONDS, PendingDrains
from bigfleet.shard.providers.create_failures import CreateFailure, class_of_code

S = MachineState
K = ActionKind
SETTLE_SECONDS: Final = 5.0
_UNCERTAIN: Final = frozenset(
    {
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.OK,
    }
)
"""After these it is not known whether the provider did it. OK: an answer that cannot be read."""
_DONE: Final = {
    K.PROVISION: frozenset({S.CREATING, S.IDLE}),
    K.BOOTSTRAP: frozenset({S.CONFIGURING, S.CONFIGURED}),
    K.DELETE: frozenset({S.DELETING, S.SPECULATIVE}),
}
_DRAIN_DONE: Final = frozenset({S.DRAINING, S.IDLE})
_KEEPS_OFF: Final = frozenset(
    {
        ExecutionOutcome.PROVIDER_ERROR,
        ExecutionOutcome.TRANSITION_ERROR,
        ExecutionOutcome.RACED_TO_IDLE,
        ExecutionOutcome.OTHER,
    }
)
_log = logging.getLogger(__name__)


class Settlement:
    """Turns the end of an attempt into an outcome, and sets right what it left behind."""

    def __init__(
        self,
        means: ActionContext,
        actions: ActionSteps,
        drains: PendingDrains,
        failures: BackoffTable,
        fence: Callable[[str], None],
        epoch: int,
    ) -> None:
        self._means = means
        self._book = means.book
        self._actions = actions
        self._drains = drains
        self._failures = failures
        self._fence = fence
        self._epoch = epoch

    async def ask(self, attempt: Attempt, failed: BaseException) -> None:
        """Ask the provider, where it is not known whether it did what was ordered."""
        if attempt.client is None or not _is_uncertain(failed):
            return
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                seen = await attempt.client.get(attempt.order.machine, seconds=SETTLE_SECONDS)
        except (ProviderError, TimeoutError):
            return
        except MachineError as error:
            self._actions.refused(attempt, error.reason, str(error))
            return
        attempt.truth = Truth.DONE if _is_done(attempt, seen) else Truth.NOT_DONE
        if attempt.truth is Truth.NOT_DONE:
            self._undo(attempt)
        elif attempt.drain:
            self._drains.remove(attempt.order.machine)
        self._book.take(seen, own=True)

    def end(self, attempt: Attempt, failed: BaseException | None) -> ExecutionOutcome:
        """Everything but counting and freeing."""
        if failed is None:
            if attempt.order.kind is not K.PROVISION:
                self._failures.action_succeeded(attempt.order.machine)
            return ExecutionOutcome.SUCCESS
        outcome = self._outcome(attempt, failed)
        self._set_right(attempt, failed, outcome)
        order = attempt.order
        keys = {
            "kind": order.kind.title,
            "machine": order.machine,
            "outcome": str(outcome),
            "error": str(failed) or type(failed).__name__,
        }
        _log.warning("action failed", extra=keys)
        return outcome

    def _outcome(self, attempt: Attempt, failed: BaseException) -> ExecutionOutcome:
        match failed:
            case ActionFailedError():
                return failed.outcome
            case FencedError():
                self._fenced(attempt, failed)
                return ExecutionOutcome.FENCED
            case ProviderError():
                late = failed.code is grpc.StatusCode.DEADLINE_EXCEEDED
                return ExecutionOutcome.CANCELED if late else ExecutionOutcome.PROVIDER_ERROR
            case TimeoutError():
                self._actions.timed_out(attempt)
                return ExecutionOutcome.CANCELED
            case asyncio.CancelledError():
                return ExecutionOutcome.CANCELED
            case IllegalMoveError():
                return ExecutionOutcome.TRANSITION_ERROR
            case OSError():
                # The journal cannot be written, and what is not written down is not done.
                return ExecutionOutcome.OTHER
            case _:
                keys = {"machine": attempt.order.machine}
                _log.error("action broke", exc_info=failed, extra=keys)
                return ExecutionOutcome.OTHER

    def _fenced(self, attempt: Attempt, error: FencedError) -> None:
        self._fence(error.provider)
        keys = {
            "machine": attempt.order.machine,
            "method": error.method,
            "epoch": self._epoch,
            "sequence": error.sequence,
            "error": error.text,
        }
        _log.error("provider fenced this shard's mutation", extra=keys)

    def _set_right(
        self, attempt: Attempt, failed: BaseException, outcome: ExecutionOutcome
    ) -> None:
        order = attempt.order
        settled = isinstance(failed, ActionFailedError) and failed.settled
        wait = 0.0
        if attempt.truth is not Truth.DONE:
            wait = self._keep_off(attempt, failed, outcome)
        if attempt.truth is Truth.UNKNOWN:
            if not settled:
                self._undo(attempt)
            if attempt.client is not None:
                self._means.lister.refresh(order.machine)
        if attempt.drain and outcome is not ExecutionOutcome.FENCED:
            # Never at once: what fails before a provider is called would fail forever in one
            # instant.
            self._drains.again(order.machine, wait or AGAIN_SECONDS)

    def _undo(self, attempt: Attempt) -> None:
        """The book as if nothing had been ordered; a machine in its grace stays in it."""
        machine = self._book.get(attempt.order.machine)
        if machine is None or attempt.order.kind is K.KEEP:
            return
        if attempt.drain:
            if machine.state is S.DRAINING and attempt.pending_drain is not None:
                leaving = machine.leaving or Departure()
                self._book.revert(machine.id)
                self._book.leave(machine.id, leaving.for_stamp, leaving.final)
                self._drains.note(attempt.pending_drain)
        elif attempt.order.kind in (K.RECLAIM, K.PREEMPT):
            self._book.stay(machine.id)
        else:
            self._book.revert(machine.id)

    def _keep_off(
        self, attempt: Attempt, failed: BaseException, outcome: ExecutionOutcome
    ) -> float:
        """Leave the machine alone where trying again at once would be no use; for how long."""
        called = attempt.client is not None
        if attempt.order.kind is K.PROVISION and called:
            self._create_refused(attempt, failed)
        elif outcome in _KEEPS_OFF or (outcome is ExecutionOutcome.CANCELED and called):
            return self._failures.action_failed(attempt.order.machine)
        return 0.0

    def _create_refused(self, attempt: Attempt, failed: BaseException) -> None:
        # A Create that was taken and ended in Failed is classified when the book changes.
        machine = self._book.get(attempt.order.machine)
        if machine is None or isinstance(failed, FencedError | ActionFailedError):
            return
        failure = CreateFailure.UNAVAILABLE
        if isinstance(failed, ProviderError):
            failure = class_of_code(failed.code)
        self._means.metrics.create_failed(failure)
        self._failures.create_failed(machine, failure, str(failed))


def _is_uncertain(failed: BaseException) -> bool:
    if isinstance(failed, ProviderError):
        return failed.code in _UNCERTAIN
    return isinstance(failed, TimeoutError)


def _is_done(attempt: Attempt, seen: Machine) -> bool:
    """Whether the provider did what was ordered, or is doing it."""
    if attempt.drain:
        return seen.state in _DRAIN_DONE
    if attempt.order.kind is K.BOOTSTRAP and seen.cluster != attempt.order.cluster:
        return False
    return seen.state in _DONE.get(attempt.order.kind, frozenset())
