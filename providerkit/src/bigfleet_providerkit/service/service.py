"""The six RPCs over values: the order of checks, and nothing about transport.

    identity, arguments, Delete offered?, fence, known?, repeat?, position, size, accept, commit

Up to the commit nothing is awaited except the machine's lock, so a mutation is one step of the
event loop. A mutation that was begun is finished even when its caller has gone. Answers are bytes,
because machines keep theirs encoded; the methods named after RPCs give protobuf values to callers
in the same process.
"""

import asyncio
from collections.abc import Callable

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_base.identifiers import shortened
from bigfleet_providerkit.backend.state.ledger import Edit, Ledger, Work
from bigfleet_providerkit.clock import Clock
from bigfleet_providerkit.errors import Code, Refusal, StoreUnavailable
from bigfleet_providerkit.hostexec.hostkey import new_seed
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.fence import newer
from bigfleet_providerkit.machines.record import Record, varint
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.machines.transitions import (
    ClusterBinding,
    OutOfPosition,
    Repeat,
    accept,
    decide,
)
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.service.identity import PLAINTEXT, Peer, may_mutate, may_read
from bigfleet_providerkit.service.requests import (
    Mutation,
    MutationRequest,
    check_filter,
    read_machine,
    read_mutation,
)

Begin = Callable[[Record, Work, bytes], None]


def ack(operation: str, machine: bytes) -> bytes:
    """The bytes of a TransitionAck."""
    text = operation.encode()
    return b"".join((b"\x0a", varint(len(text)), text, b"\x12", varint(len(machine)), machine))


class ProviderService:
    """CapacityProvider, without its transport."""

    def __init__(
        self, ledger: Ledger, settings: Settings, clock: Clock, metrics: Metrics, begin: Begin
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._begin = begin
        self._committing: set[asyncio.Future[bytes]] = set()
        self.closing = False

    # For callers inside the process.

    async def create(self, request: pb.CreateRequest) -> pb.TransitionAck:
        """Create, as over gRPC; raises Refusal."""
        return pb.TransitionAck.FromString(await self.mutate(request))

    async def configure(self, request: pb.ConfigureRequest) -> pb.TransitionAck:
        """Configure, as over gRPC; raises Refusal."""
        return pb.TransitionAck.FromString(await self.mutate(request))

    async def drain(self, request: pb.DrainRequest) -> pb.TransitionAck:
        """Drain, as over gRPC; raises Refusal."""
        return pb.TransitionAck.FromString(await self.mutate(request))

    async def delete(self, request: pb.DeleteRequest) -> pb.TransitionAck:
        """Delete, as over gRPC; raises Refusal."""
        return pb.TransitionAck.FromString(await self.mutate(request))

    async def get(self, request: pb.MachineRef) -> pb.Machine:
        """Get, as over gRPC; raises Refusal."""
        return pb.Machine.FromString(self.read_one(request))

    async def list(self, request: pb.ListFilter) -> pb.MachineList:
        """List, as over gRPC; raises Refusal."""
        return pb.MachineList.FromString(self.read_many(request))

    # The same as bytes, with the caller's identity.

    def read_one(self, request: pb.MachineRef, peer: Peer = PLAINTEXT) -> bytes:
        """The bytes of one Machine."""
        may_read(peer)
        machine = self._ledger.inventory.encoded(read_machine(request.id, "id"))
        if machine is None:
            raise unknown(request.id)
        return machine

    def read_many(self, request: pb.ListFilter, peer: Peer = PLAINTEXT) -> bytes:
        """The bytes of a MachineList."""
        may_read(peer)
        states = check_filter(request)
        return self._ledger.inventory.listing(states, request.max_results, request.since_revision)

    async def mutate(self, request: MutationRequest, peer: Peer = PLAINTEXT) -> bytes:
        """The bytes of a TransitionAck."""
        may_mutate(peer, request.shard_id)
        mutation = read_mutation(request, self._settings.max_metadata)
        if mutation.kind is Kind.DELETE and not self._settings.delete_offered:
            raise Refusal(Code.UNIMPLEMENTED, "this provider's machines cannot be given back")
        if self.closing:
            raise Refusal(Code.UNAVAILABLE, "the provider is shutting down")
        locks = self._ledger.locks
        if not locks.acquire_now(mutation.machine):
            await locks.acquire(mutation.machine)
        # From here to the answer nothing is awaited but the commit, which needs no caller.
        try:
            edit = Edit()
            self._pass_fence(mutation, edit)
            answer = self._decide(mutation, edit)
        except BaseException:
            locks.release(mutation.machine)
            raise
        return await self._commit(mutation, edit, answer)

    async def settled(self) -> None:
        """Wait for the mutations that are being committed."""
        while self._committing:
            await asyncio.wait(set(self._committing))

    def _commit(
        self, mutation: Mutation, edit: Edit, answer: "Work | str | Refusal"
    ) -> "asyncio.Future[bytes]":
        """Commit what a mutation changes, begin its work, then answer."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._committing.add(answered)

        def then(error: StoreUnavailable | None) -> None:
            self._committing.discard(answered)
            try:
                result = self._finish(mutation, edit, answer, error)
            except Refusal as refusal:
                if not answered.done():
                    answered.set_exception(refusal)
            else:
                if not answered.done():
                    answered.set_result(result)
            finally:
                self._ledger.locks.release(mutation.machine)

        if edit.record is None and edit.mark is None:
            then(None)
        else:
            self._ledger.submit(edit, then)
        return answered

    def _finish(
        self,
        mutation: Mutation,
        edit: Edit,
        answer: "Work | str | Refusal",
        error: StoreUnavailable | None,
    ) -> bytes:
        if error is not None:
            raise Refusal(Code.UNAVAILABLE, str(error))
        if isinstance(answer, Refusal):
            raise answer
        machine = self._ledger.inventory.encoded(mutation.machine) or b""
        if isinstance(answer, str):
            self._metrics.replays.labels(mutation.kind.method).inc()
            return ack(answer, machine)
        if edit.record is not None:
            self._begin(edit.record, answer, mutation.blob)
        return ack(answer.operation, machine)

    def _pass_fence(self, mutation: Mutation, edit: Edit) -> None:
        token = mutation.token
        if token.zero:
            return
        fences = self._ledger.fences
        mark = fences.mark(token.shard, mutation.machine)
        if not newer(token, mark):
            assert mark is not None
            self._metrics.fenced.labels(mutation.kind.method).inc()
            raise Refusal(
                Code.FAILED_PRECONDITION,
                f"fenced: token ({token.epoch}, {token.sequence}) of shard {token.shard!r} is not "
                f"newer than ({mark.epoch}, {mark.sequence})",
            )
        edit.mark = ((token.shard, mutation.machine), fences.next_mark(token))

    def _decide(self, mutation: Mutation, edit: Edit) -> "Work | str | Refusal":
        """The work that begins, the stored operation that this repeats, or why neither."""
        record = self._ledger.inventory.get(mutation.machine)
        if record is None:
            return unknown(mutation.machine)
        decision = decide(record, mutation.kind)
        if isinstance(decision, Repeat):
            return decision.operation
        if isinstance(decision, OutOfPosition):
            return Refusal(Code.INTERNAL, decision.text)
        if len(mutation.blob) > self._settings.max_blob:
            return Refusal(
                Code.RESOURCE_EXHAUSTED,
                f"bootstrap_blob has {len(mutation.blob)} bytes; "
                f"at most {self._settings.max_blob} can be delivered here",
            )
        operation = self._ledger.ids.next()
        now = self._clock.now()
        type_ = record.shape.instance_type
        limit = self._settings.limit(mutation.kind, mutation.grace, type_)
        binding = ClusterBinding(mutation.cluster, mutation.metadata)
        edit.record = accept(record, mutation.kind, operation, binding)
        pinned = mutation.kind is Kind.CREATE and self._settings.pinned_host_keys
        seed = new_seed() if pinned else b""
        edit.work = Work(mutation.kind, operation, now, now + limit, mutation.grace, seed)
        return edit.work


def unknown(machine: str) -> Refusal:
    """NOT_FOUND for an id that no machine has."""
    return Refusal(Code.NOT_FOUND, f"there is no machine {shortened(machine)}")
