"""The reference provider itself: the pipeline of checks, the transitions and the reads.

The order of checks is the list `steps`; each step answers, refuses or lets the call go on. All of
it runs on one event loop and awaits nothing before the answer, so a mutation is one step.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reference.config import Config
from reference.inventory import Inventory, Slot, seed
from reference.reads import Code, Reads, RefusedError
from reference.store import Fences, Store
from reference.substrate import LateError, Substrate, SubstrateError

Request = pb.CreateRequest | pb.ConfigureRequest | pb.DrainRequest | pb.DeleteRequest
SPECULATIVE, CREATING, IDLE = 1, 2, 3
CONFIGURING, CONFIGURED, DRAINING, DELETING, FAILED = 4, 5, 6, 7, 8
POSITION = {
    "create": (SPECULATIVE, CREATING, IDLE),
    "configure": (IDLE, CONFIGURING, CONFIGURED),
    "drain": (CONFIGURED, DRAINING, IDLE),
    "delete": (IDLE, DELETING, SPECULATIVE),
}
MOST_UNKNOWN_MARKS = 1024
BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Call:
    """One mutation on its way through the checks."""

    kind: str
    request: Request
    identity: str | None = None
    slot: Slot | None = None

    @property
    def known(self) -> Slot:
        """The machine, once it was looked up."""
        assert self.slot is not None
        return self.slot


class Provider(Reads):
    """See the module's head."""

    substrate_type: ClassVar[type[Substrate]] = Substrate
    store_type: ClassVar[type[Store]] = Store

    def __init__(self, config: Config) -> None:
        self.config = config
        self.store = self.store_type(config.state)
        self.inventory = Inventory()
        self.fences: Fences = {}
        self.unknown: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self.counter = 0
        self.substrate = self.substrate_type(config.slow_s)
        self.tasks: set[asyncio.Future[None]] = set()
        self.load()

    # Life of the process

    def load(self) -> None:
        """Seed a fresh store, or go on from a used one."""
        slots = self.store.slots()
        if slots:
            self.counter = int(self.store.meta("counter", "0"))
            for slot in slots:
                self.inventory.add(slot)
                if slot.record.host.ref:
                    self.substrate.hosts.add(slot.record.host.ref)
            self.load_fences(self.store.fences())
            return
        self.store.begin()
        for record in seed(self.config.provider, self.config.seed_count):
            slot = Slot(record)
            self.inventory.slots[record.id] = slot
            self.inventory.touch(slot)
            self.store.put(slot)
        self.store.commit()

    def load_fences(self, fences: Fences) -> None:
        """Marks of real machines and of ids that do not exist are kept apart."""
        for key, mark in fences.items():
            if key[1] in self.inventory.slots:
                self.fences[key] = mark
            else:
                self.unknown[key] = mark

    def start(self) -> None:
        """Resume what was in flight and start the loops."""
        self.spawn(self.reconcile_loop())
        for slot in list(self.inventory.slots.values()):
            if slot.running:
                self.resume(slot)

    def resume(self, slot: Slot) -> None:
        """Work that a crash interrupted: Configure cannot go on, its data is not kept."""
        kind, operation = slot.running.split("|")
        if kind == "configure":
            self.spawn(self.expire(slot, operation))
        else:
            self.spawn(self.run(slot, kind, operation, self.config.transition_timeout_s))

    async def expire(self, slot: Slot, operation: str) -> None:
        """An interrupted Configure ends at its stored deadline."""
        await asyncio.sleep(max(0.0, slot.deadline - time.time()))
        if slot.running == f"configure|{operation}":
            self.fail(slot, "Interrupted: configure was running when the provider stopped")

    def spawn(self, work: Awaitable[None]) -> None:
        """Background work that ends with the process."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def stop(self) -> None:
        """End all work as a crash would: nothing more is written."""
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.store.close()

    # Mutations

    def steps(self) -> list[Callable[[Call], pb.TransitionAck | None]]:
        """The order of the checks."""
        return [
            self.identify,
            self.validate,
            self.offered,
            self.fence,
            self.find,
            self.repeat,
            self.position,
            self.fits,
        ]

    async def mutate(
        self, kind: str, request: Request, identity: str | None = None
    ) -> pb.TransitionAck:
        """One mutation through all checks."""
        call = Call(kind, request, identity)
        for step in self.steps():
            answer = step(call)
            if answer is not None:
                return answer
        return await self.accept(call)

    def identify(self, call: Call) -> pb.TransitionAck | None:
        """With TLS: the certificate is that of the shard in the request."""
        if call.identity is not None and call.identity != f"shard/{call.request.shard_id}":
            raise RefusedError(Code.PERMISSION_DENIED, "the certificate is another shard's")
        return None

    def validate(self, call: Call) -> pb.TransitionAck | None:
        """Arguments that can never be right."""
        request = call.request
        if not request.machine_id:
            raise RefusedError(Code.INVALID_ARGUMENT, "machine_id is empty")
        if isinstance(request, pb.DrainRequest) and request.grace_period_seconds < 0:
            raise RefusedError(Code.INVALID_ARGUMENT, "a grace is never negative")
        return None

    def offered(self, call: Call) -> pb.TransitionAck | None:
        """Owned hardware is not given back."""
        if call.kind == "delete" and not self.config.offers_delete:
            raise RefusedError(Code.UNIMPLEMENTED, "this provider does not give machines back")
        return None

    def fence(self, call: Call) -> pb.TransitionAck | None:
        """A token has to be newer than the mark of its pair; a passing one moves it."""
        request = call.request
        token = (request.shard_epoch, request.sequence_number)
        if not request.shard_id and token == (0, 0):
            return None
        key = self.fence_key(call)
        mark = self.mark(key)
        if mark is not None and not self.newer(token, mark):
            self.stale(key, token)
            raise RefusedError(Code.FAILED_PRECONDITION, f"token {token} is not newer than {mark}")
        self.move_mark(key, token)
        return None

    def fence_key(self, call: Call) -> tuple[str, str]:
        """Whose mark a token is compared with."""
        return (call.request.shard_id, call.request.machine_id)

    def mark(self, key: tuple[str, str]) -> tuple[int, int] | None:
        """The highest accepted token."""
        return self.fences.get(key) or self.unknown.get(key)

    def newer(self, token: tuple[int, int], mark: tuple[int, int]) -> bool:
        """By epoch, then by sequence."""
        return token > mark

    def stale(self, key: tuple[str, str], token: tuple[int, int]) -> None:
        """A refused token leaves the mark alone."""

    def move_mark(self, key: tuple[str, str], token: tuple[int, int]) -> None:
        """Remember a token; marks of unknown ids are bounded, the newest stay."""
        if key[1] in self.inventory.slots:
            self.fences[key] = token
        else:
            self.unknown[key] = token
            self.unknown.move_to_end(key)
            if len(self.unknown) > MOST_UNKNOWN_MARKS:
                self.store.drop_fence(*self.unknown.popitem(last=False)[0])
        self.store.put_fence(*key, token)

    def find(self, call: Call) -> pb.TransitionAck | None:
        """The machine has to exist."""
        call.slot = self.inventory.slots.get(call.request.machine_id)
        if call.slot is None:
            raise RefusedError(Code.NOT_FOUND, f"no machine {call.request.machine_id[:64]!r}")
        return None

    def repeat(self, call: Call) -> pb.TransitionAck | None:
        """In its own transitional or target state an operation is not started again."""
        slot = call.known
        operation = slot.operations.get(call.kind)
        if operation is None or slot.record.state not in POSITION[call.kind][1:]:
            return None
        return self.ack(slot, operation)

    def position(self, call: Call) -> pb.TransitionAck | None:
        """Each mutation starts from one state."""
        state = call.known.record.state
        if state != POSITION[call.kind][0]:
            raise RefusedError(Code.INTERNAL, f"{call.kind} is not possible in state {state}")
        return None

    def fits(self, call: Call) -> pb.TransitionAck | None:
        """What the substrate can carry."""
        return None

    async def accept(self, call: Call) -> pb.TransitionAck:
        """Move the machine, remember the operation, answer, and let the work begin."""
        slot, kind = call.known, call.kind
        operation = self.new_operation(slot, kind)
        slot.operations[kind] = operation
        slot.running = f"{kind}|{operation}"
        limit = self.config.transition_timeout_s
        slot.deadline = time.time() + limit
        slot.record.state = self.by_way_of(kind)  # type: ignore[assignment]
        if isinstance(call.request, pb.ConfigureRequest):
            self.bind(slot, call.request)
        self.starting(slot, kind)
        self.changed(slot)
        answer = self.ack(slot, operation)
        self.begin_work(slot, kind, operation, limit)
        return answer

    def begin_work(self, slot: Slot, kind: str, operation: str, limit: float) -> None:
        """The work starts after the answer."""
        self.spawn(self.run(slot, kind, operation, limit))

    def by_way_of(self, kind: str) -> int:
        """The transitional state of an operation."""
        return POSITION[kind][1]

    def starting(self, slot: Slot, kind: str) -> None:
        """What else changes when an operation is accepted: nothing."""

    def bind(self, slot: Slot, request: pb.ConfigureRequest) -> None:
        """Cluster and a copy of the metadata, from acceptance on."""
        slot.record.cluster = request.cluster_id
        slot.record.shard_metadata.clear()
        slot.record.shard_metadata.update(self.kept(dict(request.shard_metadata)))

    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        """Metadata as it is stored: as it was sent."""
        return metadata

    def new_operation(self, slot: Slot, kind: str) -> str:
        """An id that was never used."""
        self.counter += 1
        self.store.put_meta("counter", str(self.counter))
        number, digits = self.counter, ""
        while number:
            number, digit = divmod(number, 36)
            digits = BASE36[digit] + digits
        return f"{self.store.store_id}-{digits}"

    def ack(self, slot: Slot, operation: str) -> pb.TransitionAck:
        """The answer: the id, and the machine as it is now."""
        return pb.TransitionAck(operation_id=operation, machine=slot.record)

    # Transitions

    async def run(self, slot: Slot, kind: str, operation: str, limit: float) -> None:
        """The work of one operation, bounded by its time-out."""
        work = asyncio.ensure_future(self.substrate.perform(kind, slot.record, operation))
        try:
            done, _ = await asyncio.wait({work}, timeout=limit)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise
        if slot.running != f"{kind}|{operation}":
            return
        if not done:
            await self.timed_out(slot, kind, operation, work)
            return
        error = work.exception()
        if error is None:
            self.finish(slot, kind, work.result())
        elif isinstance(error, SubstrateError):
            self.broken(slot, kind, str(error))
        else:
            raise error

    async def timed_out(
        self, slot: Slot, kind: str, operation: str, work: "asyncio.Future[str]"
    ) -> None:
        """The time is up: FAILED, and what comes later is dropped."""
        self.fail(slot, f"Timeout: {kind} did not end in time")
        work.cancel()
        try:
            await work
        except LateError as late:
            await asyncio.sleep(late.seconds)
            self.late(slot, kind, operation)
        except (asyncio.CancelledError, SubstrateError):
            return

    def late(self, slot: Slot, kind: str, operation: str) -> None:
        """A result that came too late is dropped."""

    def finish(self, slot: Slot, kind: str, host: str) -> None:
        """The end of an operation that worked."""
        record = slot.record
        was = record.cluster
        record.state = POSITION[kind][2]  # type: ignore[assignment]
        slot.running = ""
        if kind == "create":
            record.host.provider, record.host.ref = self.config.provider, host
        elif kind == "drain":
            self.unbind(slot)
        elif kind == "delete":
            self.vacate(slot)
        self.ended(slot, kind)
        self.changed(slot)
        self.spawn(self.substrate.accident(kind, was, record.host.ref))

    def ended(self, slot: Slot, kind: str) -> None:
        """What else changes at the end of an operation: nothing."""

    def unbind(self, slot: Slot) -> None:
        """Cluster and metadata go together."""
        slot.record.ClearField("cluster")
        slot.record.shard_metadata.clear()

    def vacate(self, slot: Slot) -> None:
        """A life has ended; the id of its Delete stays for a repeat."""
        self.substrate.hosts.discard(slot.record.host.ref)
        slot.record.ClearField("host")
        slot.operations = {k: v for k, v in slot.operations.items() if k == "delete"}

    def broken(self, slot: Slot, kind: str, reason: str) -> None:
        """The substrate failed: the machine is FAILED and keeps what it has."""
        self.fail(slot, reason)

    def fail(self, slot: Slot, reason: str) -> None:
        """FAILED, with the reason."""
        slot.record.state = pb.MACHINE_STATE_FAILED
        slot.record.last_error = reason
        slot.running = ""
        slot.failed_at = time.time()
        self.changed(slot)

    def changed(self, slot: Slot) -> None:
        """A record changed: next revision, and kept before anybody sees it."""
        self.touch(slot)
        self.store.put(slot)

    def touch(self, slot: Slot) -> None:
        """Give the record the next revision."""
        self.inventory.touch(slot)

    # Loops

    async def reconcile_loop(self) -> None:
        """Look after lost hosts and failed slots."""
        while True:
            pause = min(self.config.reconcile_interval_s, self.config.heal_after_s / 4 or 1e9)
            await asyncio.sleep(pause)
            for slot in list(self.inventory.slots.values()):
                self.look(slot)
                if self.due_for_healing(slot):
                    self.heal(slot)

    def due_for_healing(self, slot: Slot) -> bool:
        """FAILED for long enough."""
        limit = self.config.heal_after_s
        failed = slot.record.state == FAILED
        return bool(limit) and failed and time.time() - slot.failed_at >= limit

    def look(self, slot: Slot) -> None:
        """A host that is missing twice is lost."""
        record = slot.record
        if record.state not in (IDLE, CONFIGURED) or record.host.ref in self.substrate.hosts:
            slot.missed = 0
            return
        slot.missed += 1
        if slot.missed >= 2:
            self.fail(slot, f"HostLost: {record.host.ref} is gone")

    def heal(self, slot: Slot) -> None:
        """A FAILED slot becomes SPECULATIVE again; marks stay."""
        self.unbind(slot)
        self.vacate(slot)
        slot.operations = {}
        slot.record.ClearField("last_error")
        slot.record.state = pb.MACHINE_STATE_SPECULATIVE
        self.changed(slot)
