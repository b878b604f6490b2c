"""One provider, spoken to in values: every call stamped, with a deadline, its answer checked.

A call is one attempt with one token; nothing is repeated here. What a status means is decided in
`errors`, how bytes travel in `transport`, which records a shard may take in `bigfleet.wire`. Lists
come decoded, or as bytes (see `pages`) for those who know most of the records already. A call is
told of once its answer has been read: an answer that cannot be read is not OK.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

import grpc
from google.protobuf.message import DecodeError

from bigfleet.model import Machine, MachineError, MachineState
from bigfleet.provider.errors import (
    FencedError,
    ProviderError,
    SiteError,
    UnusableAnswerError,
    failed_call,
)
from bigfleet.provider.transport import CallError, GrpcTransport, ListsRaw, Transport
from bigfleet.wire.errors import UnknownStateError
from bigfleet.wire.fencing import FencingStamps, Token
from bigfleet.wire.machines import machine_from_proto
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import provider_pb2 as pb

CALL_SECONDS: Final = 30.0
LIST_SECONDS: Final = 120.0

_CHUNK: Final = 200
"""Records converted between two turns of the event loop: 5 ms of work, at 25 us a record."""
_LATE: Final = 1.0
"""Seconds a transport may be over its deadline before the call is given up for it."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Watch = Callable[[str, str, str, float], None]
"""Is told of every call that ended: provider, method, gRPC status name, seconds to the answer."""


@dataclass(frozen=True, slots=True)
class ProviderSite:
    """Where a provider is: its name, the address of its gRPC server, its region."""

    name: str
    address: str
    region: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise SiteError(f"the provider at {self.address!r} has no name: give it one")
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal():
            raise SiteError(f"provider {self.name!r} has address {self.address!r}: write host:port")


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that must not be taken; the last good one stays."""

    machine_id: str
    error: MachineError


@dataclass(frozen=True, slots=True)
class Ack:
    """A mutation was accepted, or had been before. The snapshot is None when it was refused."""

    operation_id: str
    machine: Machine | None
    refused: RefusedRecord | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a List said: the records that can be used, those that cannot, and the next cursor."""

    machines: tuple[Machine, ...]
    refused: tuple[RefusedRecord, ...] = ()
    revision: bytes = field(default=b"", repr=False)


class ProviderClient:
    """The six calls to one provider."""

    def __init__(
        self,
        site: ProviderSite,
        stamps: FencingStamps,
        transport: Transport,
        watch: Watch | None = None,
    ) -> None:
        self.site = site
        self._stamps = stamps
        self._transport = transport
        self._watch = watch

    @classmethod
    def dial(
        cls,
        site: ProviderSite,
        stamps: FencingStamps,
        files: TlsFiles | None = None,
        watch: Watch | None = None,
    ) -> ProviderClient:
        """A client over gRPC. Nothing is dialled before the first call."""
        return cls(site, stamps, GrpcTransport(site.address, files), watch)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.site.name

    async def create(self, machine_id: str, *, seconds: float = CALL_SECONDS) -> Ack:
        """Make a host for a slot."""
        token = self._stamps.next()
        request = pb.CreateRequest(
            machine_id=machine_id,
            shard_id=token.shard_id,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        call = self._transport.create(request, seconds)
        return await self._mutate("Create", machine_id, token, call, seconds)

    async def configure(
        self,
        machine_id: str,
        cluster_id: str,
        blob: bytes,
        metadata: Mapping[str, str],
        *,
        seconds: float = CALL_SECONDS,
    ) -> Ack:
        """Make a host a node of a cluster."""
        token = self._stamps.next()
        request = pb.ConfigureRequest(
            machine_id=machine_id,
            cluster_id=cluster_id,
            bootstrap_blob=blob,
            shard_metadata=metadata,
            shard_id=token.shard_id,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        call = self._transport.configure(request, seconds)
        return await self._mutate("Configure", machine_id, token, call, seconds)

    async def drain(
        self,
        machine_id: str,
        grace_seconds: int,
        *,
        seconds: float = CALL_SECONDS,
    ) -> Ack:
        """Take a host out of its cluster."""
        token = self._stamps.next()
        request = pb.DrainRequest(
            machine_id=machine_id,
            grace_period_seconds=grace_seconds,
            shard_id=token.shard_id,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        call = self._transport.drain(request, seconds)
        return await self._mutate("Drain", machine_id, token, call, seconds)

    async def delete(self, machine_id: str, *, seconds: float = CALL_SECONDS) -> Ack:
        """Give a host back."""
        token = self._stamps.next()
        request = pb.DeleteRequest(
            machine_id=machine_id,
            shard_id=token.shard_id,
            shard_epoch=token.epoch,
            sequence_number=token.sequence,
        )
        call = self._transport.delete(request, seconds)
        return await self._mutate("Delete", machine_id, token, call, seconds)

    async def get(self, machine_id: str, *, seconds: float = CALL_SECONDS) -> Machine:
        """One machine as it is now; MachineError when its record must not be taken."""
        call = self._transport.get(pb.MachineRef(id=machine_id), seconds)
        async with self._answered("Get", machine_id, call, seconds) as record:
            machine = self._machine("Get", record)
        if machine.id != machine_id:
            raise MachineError(
                f"asked for machine {machine_id!r}, provider {self.name} shows {machine.id!r}: "
                "Get has to answer with the machine it is asked for"
            )
        return machine

    async def list(
        self,
        *,
        states: Iterable[MachineState] = (),
        max_results: int = 0,
        since: bytes = b"",
        seconds: float = LIST_SECONDS,
    ) -> Listing:
        """All machines, or those in some states, or those changed since a cursor."""
        request = pb.ListFilter(
            states=[pb.MachineState.ValueType(int(state)) for state in states],
            max_results=max_results,
            since_revision=since,
        )
        call = self._transport.list(request, seconds)
        machines: list[Machine] = []
        refused: list[RefusedRecord] = []
        async with self._answered("List", "", call, seconds) as found:
            for number, record in enumerate(found.machines, 1):
                try:
                    machines.append(self._machine("List", record))
                except MachineError as error:
                    refused.append(RefusedRecord(record.id, error))
                if number % _CHUNK == 0:
                    await asyncio.sleep(0)
        return Listing(tuple(machines), tuple(refused), found.revision)

    @asynccontextmanager
    async def list_raw(
        self, *, max_results: int = 0, since: bytes = b"", seconds: float = LIST_SECONDS
    ) -> AsyncIterator[bytes]:
        """The same as the bytes of a MachineList, to be read with `pages` and `decode` within."""
        request = pb.ListFilter(max_results=max_results, since_revision=since)
        if isinstance(self._transport, ListsRaw):
            call = self._transport.list_raw(request, seconds)
        else:
            call = _serialised(self._transport.list(request, seconds))
        async with self._answered("List", "", call, seconds) as raw:
            yield raw

    def decode(self, record: bytes) -> Machine:
        """A record of a raw list as a value; may be called away from the event loop.

        Raises MachineError when this record must not be taken, UnusableAnswerError when nothing of
        its list can be used.
        """
        try:
            proto = pb.Machine.FromString(record)
        except DecodeError as error:
            raise UnusableAnswerError(
                self.name, "List", "", grpc.StatusCode.OK, f"no machine record: {error}"
            ) from error
        return self._machine("List", proto)

    async def close(self) -> None:
        """Hang up. Calls under way end CANCELLED."""
        await self._transport.close()

    async def _mutate(
        self,
        method: str,
        machine_id: str,
        token: Token,
        call: Awaitable[pb.TransitionAck],
        seconds: float,
    ) -> Ack:
        try:
            async with self._answered(method, machine_id, call, seconds) as ack:
                try:
                    return Ack(ack.operation_id, self._machine(method, ack.machine))
                except MachineError as error:
                    return Ack(ack.operation_id, None, RefusedRecord(ack.machine.id, error))
        except FencedError as error:
            error.sequence = token.sequence
            raise

    @asynccontextmanager
    async def _answered(
        self, method: str, machine_id: str, call: Awaitable[_T], seconds: float
    ) -> AsyncIterator[_T]:
        """The answer of a call, to be read within: it is OK only if it can be."""
        loop = asyncio.get_running_loop()
        began, code, took = loop.time(), grpc.StatusCode.CANCELLED, -1.0
        try:
            answer = await self._arrived(method, machine_id, call, seconds)
            code, took = grpc.StatusCode.OK, loop.time() - began
            yield answer
        except UnusableAnswerError:
            # OK without a good answer is INTERNAL wherever gRPC itself finds out.
            code = grpc.StatusCode.INTERNAL
            raise
        except ProviderError as error:
            code = error.code if took < 0 else code
            raise
        finally:
            if self._watch is not None:
                seconds_taken = loop.time() - began if took < 0 else took
                self._watch(self.name, method, code.name, seconds_taken)

    async def _arrived(
        self, method: str, machine_id: str, call: Awaitable[_T], seconds: float
    ) -> _T:
        try:
            # The transport keeps the deadline; one that hangs all the same must not hang us.
            async with asyncio.timeout(seconds + _LATE) as limit:
                return await call
        except CallError as error:
            raise failed_call(self.name, method, machine_id, error.code, error.text) from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            text = f"no answer within {seconds:g} s"
            raise failed_call(self.name, method, machine_id, code, text) from error

    def _machine(self, method: str, record: pb.Machine) -> Machine:
        def complain(complaint: str) -> None:
            _log.warning(
                "shard_metadata decode failed at ingest",
                extra={"machine": record.id, "reason": "shard_metadata", "error": complaint},
            )

        try:
            return machine_from_proto(record, self.name, self.site.region, complain)
        except UnknownStateError as error:
            raise UnusableAnswerError(
                self.name, method, record.id, grpc.StatusCode.OK, str(error)
            ) from error


async def _serialised(call: Awaitable[pb.MachineList]) -> bytes:
    # In one order, whatever became of the maps in it: equal records have equal bytes.
    return (await call).SerializeToString(deterministic=True)
