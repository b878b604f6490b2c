"""The six calls of a provider, and answers that can be asked whether they are the right ones.

A refused call is an answer like any other: it carries the code, and the behaviour says what it
expected of it. Every call has a deadline and leaves a line of evidence.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import Finding, check
from bigfleet_conformance.harness.evidence import Entry, Evidence, short
from bigfleet_conformance.harness.oracles import word

if TYPE_CHECKING:
    from bigfleet_api.v1alpha1.provider_pb2_grpc import CapacityProviderAsyncStub

CALL_DEADLINE_S = 30.0
LIST_DEADLINE_S = 120.0
Code = grpc.StatusCode
Mutation = TypeVar(
    "Mutation", pb.CreateRequest, pb.ConfigureRequest, pb.DrainRequest, pb.DeleteRequest
)


@dataclass(frozen=True, slots=True)
class Token:
    """The fencing triple of a mutation."""

    shard: str
    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f"{short(self.shard)} ({self.epoch},{self.sequence})"


ZERO = Token("", 0, 0)


@dataclass(frozen=True, slots=True)
class Binding:
    """What Configure carries: a cluster, the shard's metadata and the bootstrap data."""

    cluster: str = "conformance-cluster"
    metadata: Mapping[str, str] = field(default_factory=dict)
    blob: bytes = b"#!/bin/sh\nexit 0\n"

    def shown_by(self, machine: pb.Machine) -> bool:
        """Whether a record carries exactly this binding."""
        return machine.cluster == self.cluster and dict(machine.shard_metadata) == dict(
            self.metadata
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a mutation came back with."""

    call: str
    code: grpc.StatusCode
    detail: str
    ack: pb.TransitionAck | None
    entry: Entry
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it was accepted."""
        return self.code is Code.OK

    @property
    def fenced(self) -> bool:
        """Whether it was refused as stale."""
        return self.code is Code.FAILED_PRECONDITION

    def must_be_ok(self) -> pb.TransitionAck:
        """The ack of a call that has to be accepted."""
        self.entry.expected = "OK"
        if self.ack is None:
            raise Finding(f"{self.call}: expected OK, got {self.code.name} ({self.detail})")
        return self.ack

    def must_be_fenced(self) -> None:
        """The token is not newer than the mark."""
        self.must_be(Code.FAILED_PRECONDITION, why="the token is not newer than the mark")

    def must_not_be_fenced(self) -> None:
        """FAILED_PRECONDITION means stale, and nothing else."""
        self.entry.expected = "not FAILED_PRECONDITION"
        check(not self.fenced, f"{self.call}: FAILED_PRECONDITION, but the token is the newest")

    def must_be_refused(self) -> None:
        """A plain refusal: any error that does not say fenced."""
        self.entry.expected = "a plain refusal"
        check(not self.ok, f"{self.call}: accepted, but it is not possible in this state")
        check(
            not self.fenced,
            f"{self.call}: FAILED_PRECONDITION says fenced, and it is used for that",
        )

    def must_be(self, *codes: grpc.StatusCode, why: str = "") -> None:
        """One of these codes."""
        names = " or ".join(code.name for code in codes)
        self.entry.expected = names
        because = f", because {why}" if why else ""
        check(
            self.code in codes,
            f"{self.call}: expected {names}{because}; got {self.code.name} ({self.detail})",
        )


class Link(Protocol):
    """A way to one provider instance; with TLS every shard id has a certificate of its own."""

    def stub(self, shard: str = "", connection: int = 0) -> "CapacityProviderAsyncStub":
        """The stub on which a shard calls; a second connection on request."""
        ...


class Calls:
    """The calls of one behaviour over one link."""

    def __init__(self, link: Link, evidence: Evidence) -> None:
        self.link = link
        self.evidence = evidence
        self._started = time.monotonic()

    async def create(self, machine: str, token: Token, *, connection: int = 0) -> Answer:
        """Create."""
        request = pb.CreateRequest(
            machine_id=machine,
            shard_id=token.shard,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        stub = self.link.stub(token.shard, connection)
        return await self._mutate(stub.Create, "Create", request, token)

    async def configure(
        self, machine: str, token: Token, binding: Binding, *, connection: int = 0
    ) -> Answer:
        """Configure."""
        request = pb.ConfigureRequest(
            machine_id=machine,
            cluster_id=binding.cluster,
            bootstrap_blob=binding.blob,
            shard_metadata=dict(binding.metadata),
            shard_id=token.shard,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        stub = self.link.stub(token.shard, connection)
        return await self._mutate(stub.Configure, "Configure", request, token)

    async def drain(
        self, machine: str, token: Token, grace: int = 0, *, connection: int = 0
    ) -> Answer:
        """Drain."""
        request = pb.DrainRequest(
            machine_id=machine,
            grace_period_seconds=grace,
            shard_id=token.shard,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        stub = self.link.stub(token.shard, connection)
        return await self._mutate(stub.Drain, "Drain", request, token)

    async def delete(self, machine: str, token: Token, *, connection: int = 0) -> Answer:
        """Delete."""
        request = pb.DeleteRequest(
            machine_id=machine,
            shard_id=token.shard,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        stub = self.link.stub(token.shard, connection)
        return await self._mutate(stub.Delete, "Delete", request, token)

    async def get(self, machine: str, *, shard: str = "") -> pb.Machine | grpc.StatusCode:
        """The record, or the code with which Get was refused."""
        entry = Entry(self._elapsed(), "Get", machine=short(machine))
        try:
            record = await self.link.stub(shard).Get(
                pb.MachineRef(id=machine), timeout=CALL_DEADLINE_S
            )
        except grpc.aio.AioRpcError as error:
            entry.code = error.code().name
            self.evidence.note_read(entry)
            return error.code()
        entry.code, entry.state = "OK", word(record.state)
        self.evidence.note_read(entry)
        return record

    async def see(self, machine: str) -> pb.Machine:
        """The record of a machine that has to be there."""
        record = await self.get(machine)
        if not isinstance(record, pb.Machine):
            raise Finding(f"Get {short(machine)}: expected the record, got {record.name}")
        check(record.id == machine, f"Get {short(machine)} answered with machine {record.id!r}")
        return record

    async def try_list(
        self, states: Sequence[int] = (), *, most: int = 0, since: bytes = b""
    ) -> pb.MachineList | grpc.StatusCode:
        """List, or the code with which it was refused."""
        entry = Entry(self._elapsed(), "List")
        request = pb.ListFilter(max_results=most, since_revision=since)
        request.states.extend(pb.MachineState.ValueType(state) for state in states)
        try:
            answer = await self.link.stub().List(request, timeout=LIST_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            entry.code = error.code().name
            self.evidence.note(entry)
            return error.code()
        entry.code, entry.state = "OK", f"{len(answer.machines)} machines"
        self.evidence.note_read(entry)
        return answer

    async def list(
        self, states: Sequence[int] = (), *, most: int = 0, since: bytes = b""
    ) -> pb.MachineList:
        """A List that has to succeed."""
        answer = await self.try_list(states, most=most, since=since)
        if not isinstance(answer, pb.MachineList):
            raise Finding(f"List: expected an answer, got {answer.name}")
        return answer

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    async def _mutate(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Mutation, pb.TransitionAck]",
        name: str,
        request: Mutation,
        token: Token,
    ) -> Answer:
        entry = self.evidence.note(
            Entry(self._elapsed(), name, machine=short(request.machine_id), token=str(token))
        )
        call = f"{name} {short(request.machine_id)!r} {token}"
        began = time.monotonic()
        try:
            ack = await method(request, timeout=CALL_DEADLINE_S)
        except grpc.aio.AioRpcError as error:
            entry.code = error.code().name
            took = time.monotonic() - began
            return Answer(call, error.code(), error.details() or "", None, entry, took)
        entry.code = "OK"
        entry.state = word(ack.machine.state) if ack.HasField("machine") else "no machine"
        return Answer(call, Code.OK, "", ack, entry, time.monotonic() - began)
