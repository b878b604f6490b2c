"""What each kind of order does: calls to its provider, frames to its operator, the book.

    Provision   journal, Create
    Bootstrap   blob from the operator; then Configure
    Reclaim,    journal, ReclaimInstruction; after the grace (`pending_drains`), Drain.
    Preempt     Without a session the Drain follows at once
    Keep        the instruction is cancelled
    Delete      Delete

A step waits for one peer, an operator or a provider; an action that waits for two takes two steps.
A step returns when it is done, or raises: ActionFailedError with the action's outcome, or a
provider's error as it came. `executor` keeps the deadline; `settlement` counts the outcome, takes
back what did not happen and frees the machine. When an action begins, the book already shows what
was ordered. A Create that was never answered is not repeated here: `book_listener` waits for the
provider's record of it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.model import Departure, Machine, MachineState, Profile
from bigfleet.observe.process import Clock
from bigfleet.provider import Ack, NotSupportedError, ProviderClient, Providers
from bigfleet.shard.act.attempts import Attempt
from bigfleet.shard.act.backoff import BackoffTable
from bigfleet.shard.act.book_listener import BookListener, JournalKeeper
from bigfleet.shard.act.outcomes import ActionFailedError, ExecutionOutcome
from bigfleet.shard.act.pending_drains import PendingDrain, PendingDrains
from bigfleet.shard.act.ports import ExecuteMetrics, OperatorSessions, Refresher
from bigfleet.shard.act.traces import NoTraces, Traces
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.operators.errors import BlobError, NoSessionError
from bigfleet.shard.operators.messages import Blob, Instruction
from bigfleet.shard.state.journal import JournalEntry
from bigfleet.wire.machines import metadata_from_stamp

S = MachineState
NO_DELETE_SECONDS: Final = 3600.0
"""How long a provider that does not offer Delete is not asked again."""
_STALE_BLOBS: Final = 3
_NS: Final = 1_000_000_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Everything an action works with."""

    book: Book
    providers: Providers
    sessions: OperatorSessions
    lister: Refresher
    clock: Clock
    chance: random.Random
    metrics: ExecuteMetrics
    node_name: Callable[[str], str]
    wake: Callable[[], None]
    traces: Traces = field(default_factory=NoTraces)


class ActionSteps:
    """Carries orders out, one attempt each."""

    def __init__(
        self,
        means: ActionContext,
        drains: PendingDrains,
        failures: BackoffTable,
        journal: JournalKeeper,
        watch: BookListener,
    ) -> None:
        self._means = means
        self._book = means.book
        self._clock = means.clock
        self._drains = drains
        self._failures = failures
        self._journal = journal
        self._watch = watch
        self._no_delete: dict[str, float] = {}

    def offers_delete(self, provider: str) -> bool:
        """Whether it is worth asking; a provider may learn it with a new version."""
        return self._clock.monotonic() >= self._no_delete.get(provider, 0.0)

    async def perform(self, attempt: Attempt) -> bool:
        """Do the next step of what was ordered; whether there is another one."""
        if attempt.drain:
            await self._drain_again(attempt)
            return False
        match attempt.order.kind:
            case ActionKind.BOOTSTRAP:
                return await self._bootstrap(attempt)
            case ActionKind.PROVISION:
                await self._provision(attempt)
            case ActionKind.RECLAIM | ActionKind.PREEMPT:
                return await self._reclaim(attempt)
            case ActionKind.KEEP:
                await self._keep(attempt)
            case ActionKind.DELETE:
                await self._delete(attempt)
        return False

    def timed_out(self, attempt: Attempt) -> None:
        """Its deadline passed; before the provider was called, that was the operator's time."""
        if attempt.order.kind is ActionKind.BOOTSTRAP and attempt.client is None:
            self._mute(attempt)

    def refused(self, attempt: Attempt, reason: str, error: str) -> None:
        """What the provider shows of the machine must not be taken."""
        self._means.metrics.machine_rejected(reason)
        keys = {"machine": attempt.order.machine, "reason": reason, "error": error}
        _log.warning("provider machine rejected at ingest", extra=keys)

    # -- the kinds -------------------------------------------------------------------------------

    async def _provision(self, attempt: Attempt) -> None:
        order = attempt.order
        self._expect(order, S.CREATING)
        client = self._client(order)
        if order.stamp is not None:
            await self._journal.remember(order.machine, JournalEntry(stamp=order.stamp))
        seconds = self._left(attempt)
        machine = await self._call(attempt, client, client.create(order.machine, seconds=seconds))
        if machine is None:
            self._book.start(order.machine, S.FAILED)
            raise ActionFailedError(
                ExecutionOutcome.TRANSITION_ERROR,
                "the record in the Create ack is refused",
                settled=True,
            )
        self._take(machine)
        self._refuse_failed(machine)

    async def _bootstrap(self, attempt: Attempt) -> bool:
        order = attempt.order
        machine = self._expect(order, S.CONFIGURING)
        if order.profile is None or order.stamp is None:
            raise ActionFailedError(ExecutionOutcome.MISSING_PROFILE, "the order names no need")
        client = self._client(order)
        if attempt.blob is None:
            attempt.blob = await self._blob(attempt, machine, order.profile)
            return True
        if self._is_expired(attempt, attempt.blob):
            return True
        blob, metadata = attempt.blob, metadata_from_stamp(order.stamp)
        seconds = self._left(attempt)
        call = client.configure(
            order.machine, order.cluster, blob.user_data, metadata, seconds=seconds
        )
        seen = await self._call(attempt, client, call)
        if attempt.begun is not None:
            self._means.metrics.configure_accepted(self._clock.monotonic() - attempt.begun)
        if seen is None:
            raise _unusable("Configure")
        if seen.state is S.IDLE:
            self._book.revert(order.machine)
            self._take(seen)
            raise ActionFailedError(
                ExecutionOutcome.RACED_TO_IDLE,
                "the provider took Configure and is Idle",
                settled=True,
            )
        if seen.cluster != order.cluster:
            self._book.revert(order.machine)
            self._take(seen)
            raise ActionFailedError(
                ExecutionOutcome.STALE_STATE,
                f"it belongs to cluster {seen.cluster!r}",
                settled=True,
            )
        self._take(seen)
        self._refuse_failed(seen)
        return False

    async def _reclaim(self, attempt: Attempt) -> bool:
        order = attempt.order
        machine = self._expect(order, S.CONFIGURED)
        now = self._clock.monotonic()
        pending = PendingDrain(
            order=order,
            instruction_id=f"{self._means.chance.getrandbits(128):032x}",
            node=self._means.node_name(order.machine) or order.machine,
            deadline=now + order.grace_seconds,
            since=now,
            cycle=attempt.cycle,
        )
        leaving = machine.leaving or Departure()
        entry = JournalEntry(
            stamp=machine.stamp,
            leaving=True,
            for_stamp=leaving.for_stamp,
            deadline_ns=self._clock.now() + order.grace_seconds * _NS,
            instruction_id=pending.instruction_id,
            final=leaving.final,
        )
        await self._journal.remember(order.machine, entry)
        instruction = Instruction(
            id=pending.instruction_id,
            node=pending.node,
            grace_seconds=order.grace_seconds,
            preemptor_priority=order.priority if order.kind is ActionKind.PREEMPT else 0,
            reason=order.reclaim_cause,
        )
        if self._means.sessions.send_reclaim(order.cluster, instruction):
            self._drains.add(pending)
            return False
        level = logging.WARNING if order.kind is ActionKind.RECLAIM else logging.INFO
        keys = {"machine": order.machine, "cluster": order.cluster}
        _log.log(level, "reclaim fallback: no operator session", extra=keys)
        self._drains.note(pending)
        attempt.pending_drain, attempt.drain = pending, True
        return True

    async def _drain_again(self, attempt: Attempt) -> None:
        machine = self._expect(attempt.order, S.CONFIGURED)
        if machine.leaving is None or attempt.pending_drain is None:
            raise ActionFailedError(
                ExecutionOutcome.STALE_STATE, "it is not leaving any more", settled=True
            )
        await self._drain(attempt, attempt.pending_drain)

    async def _drain(self, attempt: Attempt, pending: PendingDrain) -> None:
        order = attempt.order
        client = self._client(order)
        self._book.start(order.machine, S.DRAINING)
        self._watch.told_to_leave(order.machine, pending.since)
        seconds = self._left(attempt)
        call = client.drain(order.machine, self._drains.left(pending), seconds=seconds)
        machine = await self._call(attempt, client, call)
        self._drains.remove(order.machine)
        if machine is None:
            raise _unusable("Drain")
        self._take(machine)
        self._refuse_failed(machine)

    async def _keep(self, attempt: Attempt) -> None:
        # Forgotten before it is called off: after a crash in between the operator still holds the
        # node, which is noticed and called off; the other way round it would be drained.
        await self._journal.forget(attempt.order.machine)
        if attempt.pending_drain is not None:
            self._means.sessions.send_reclaim(
                attempt.order.cluster, attempt.pending_drain.cancelled()
            )

    async def _delete(self, attempt: Attempt) -> None:
        order = attempt.order
        self._expect(order, S.DELETING)
        client = self._client(order)
        seconds = self._left(attempt)
        try:
            call = client.delete(order.machine, seconds=seconds)
            machine = await self._call(attempt, client, call)
        except NotSupportedError:
            self._no_delete[order.provider] = self._clock.monotonic() + NO_DELETE_SECONDS
            raise
        self._means.metrics.idle_released()
        if machine is None:
            raise _unusable("Delete")
        self._take(machine)
        self._refuse_failed(machine)

    # -- their steps -----------------------------------------------------------------------------

    async def _blob(self, attempt: Attempt, machine: Machine, profile: Profile) -> Blob:
        """Bootstrap data from the operator."""
        order = attempt.order
        sent_monotonic_s = self._clock.monotonic()
        try:
            blob = await self._means.sessions.bootstrap(
                order.cluster, profile, machine, self._left(attempt)
            )
        except NoSessionError as error:
            self._mute(attempt)
            raise ActionFailedError(ExecutionOutcome.NO_SESSION, str(error)) from error
        except BlobError as error:
            self._mute(attempt)
            raise ActionFailedError(ExecutionOutcome.BLOB_ERROR, str(error)) from error
        except TimeoutError as error:
            self._mute(attempt)
            text = f"cluster {order.cluster!r} sent no bootstrap data in time"
            raise ActionFailedError(ExecutionOutcome.CANCELED, text) from error
        self._means.metrics.bootstrap_received(self._clock.monotonic() - sent_monotonic_s)
        if self._is_usable(blob):
            self._failures.bootstrapped(order.cluster)
        return blob

    def _is_usable(self, blob: Blob) -> bool:
        return not blob.expires_ns or self._clock.now() < blob.expires_ns

    def _is_expired(self, attempt: Attempt, blob: Blob) -> bool:
        """Whether the data has to be asked for again."""
        if self._is_usable(blob):
            return False
        attempt.blob = None
        attempt.expired += 1
        if attempt.expired < _STALE_BLOBS:
            return True
        self._mute(attempt)
        raise ActionFailedError(
            ExecutionOutcome.BLOB_ERROR,
            f"bootstrap data of cluster {attempt.order.cluster!r} expires on its way",
        )

    def _mute(self, attempt: Attempt) -> None:
        attempt.is_mute = True
        self._failures.bootstrap_failed(attempt.order.cluster)

    async def _call(
        self, attempt: Attempt, client: ProviderClient, call: Awaitable[Ack]
    ) -> Machine | None:
        """The machine as the ack shows it; None when that record must not be taken."""
        attempt.client = client
        ack = await call
        self._watch.accepted(attempt.order.machine)
        machine = ack.machine
        if machine is not None and machine.id == attempt.order.machine:
            return machine
        if ack.refused is not None:
            self.refused(attempt, ack.refused.error.reason, str(ack.refused.error))
        else:
            self.refused(attempt, "structural", "the ack shows another machine")
        return None

    def _take(self, machine: Machine) -> None:
        taken = self._book.take(machine, own=True)
        if taken.freed or taken.delivered:
            self._means.wake()

    def _refuse_failed(self, machine: Machine) -> None:
        if machine.state is S.FAILED:
            raise ActionFailedError(
                ExecutionOutcome.PROVIDER_ERROR, machine.last_error, settled=True
            )

    def _expect(self, order: Order, state: MachineState) -> Machine:
        machine = self._book.get(order.machine)
        if machine is None:
            raise ActionFailedError(
                ExecutionOutcome.INVENTORY_MISS, "the machine is not known any more", settled=True
            )
        if machine.state is not state:
            raise ActionFailedError(
                ExecutionOutcome.STALE_STATE, f"the machine is {machine.state.title}", settled=True
            )
        return machine

    def _client(self, order: Order) -> ProviderClient:
        if order.provider not in self._means.providers:
            text = f"provider {order.provider!r} is not registered"
            raise ActionFailedError(ExecutionOutcome.PROVIDER_ERROR, text)
        return self._means.providers[order.provider]

    def _left(self, attempt: Attempt) -> float:
        return max(0.0, attempt.deadline - self._clock.monotonic())


def _unusable(method: str) -> ActionFailedError:
    text = f"the record in the {method} ack is refused"
    return ActionFailedError(ExecutionOutcome.TRANSITION_ERROR, text, settled=True)
