"""Calls to whichever member of etcd answers.

One channel per member, one member in use; a call that fails in a way that may pass, or gets no
answer in time, goes to the next member until its own deadline. Because of that a write may have
been applied by an attempt whose answer was lost: `Answer.repeated` says that there was one, and
the caller has to find out. Every call says that it wants a member with a leader, so that one on
the wrong side of a partition says no instead of waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import grpc
import grpc.aio

from bigfleet.coordinator.store.call_metrics import StoreCallMeter
from bigfleet.coordinator.store.errors import StoreUnavailableError
from bigfleet.coordinator.store.etcd.connection.address import EtcdAddress
from bigfleet.coordinator.store.etcd.connection.faults import (
    error_words,
    fault_of,
    may_pass,
    wants_new_token,
)
from bigfleet.coordinator.store.etcd.connection.login import Login
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.etcdapi import rpc_pb2_grpc as rpc
from bigfleet.coordinator.store.interface import WRITE_SECONDS
from bigfleet.observe.process import Clock, Offload
from bigfleet.wire.channel import CLIENT_OPTIONS
from bigfleet.wire.tls import ClientTls

ATTEMPT_SECONDS: Final = 1.5
"""One member gets this long before the next one is asked."""
ROUND_PAUSE_SECONDS: Final = 0.1
"""After every member has failed once."""
_REACH: Final = "check that a majority of the members run and can be reached"
_TLS: Final = (
    "check the certificates of both sides, and that etcd speaks TLS 1.3: it does from 3.5.8 on"
)
# etcd ends connections that ping more often than every 5 s, or while nothing is under way.
_OPTIONS: Final = tuple(
    {
        **dict(CLIENT_OPTIONS),
        "grpc.keepalive_time_ms": 6_000,
        "grpc.keepalive_timeout_ms": 2_000,
        "grpc.keepalive_permit_without_calls": 0,
        "grpc.max_reconnect_backoff_ms": 1_000,
    }.items()
)


class EtcdResponse(Protocol):
    """Every answer of etcd."""

    @property
    def header(self) -> pb.ResponseHeader:
        """Who answered, and where it stands."""


Request = TypeVar("Request")
Response = TypeVar("Response", bound=EtcdResponse)


class MemberStubs:
    """The services of one member."""

    def __init__(self, endpoint: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.endpoint = endpoint
        self.channel = _channel(endpoint, credentials)
        self.kv: rpc.KVAsyncStub = rpc.KVStub(self.channel)
        self.lease: rpc.LeaseAsyncStub = rpc.LeaseStub(self.channel)
        self.watch: rpc.WatchAsyncStub = rpc.WatchStub(self.channel)
        self.auth: rpc.AuthAsyncStub = rpc.AuthStub(self.channel)
        self.maintenance: rpc.MaintenanceAsyncStub = rpc.MaintenanceStub(self.channel)


@dataclass(frozen=True, slots=True)
class MemberResponse(Generic[Response]):
    """What a member said."""

    response: Response
    repeated: bool
    """Whether an earlier attempt may have been applied as well."""


Unary = Callable[[MemberStubs], "grpc.aio.UnaryUnaryMultiCallable[Request, Response]"]
Stream = Callable[[MemberStubs], "grpc.aio.StreamStreamMultiCallable[Request, Response]"]


class EtcdMembers:
    """All members, and the one in use. Errors are those of a store."""

    def __init__(
        self, address: EtcdAddress, clock: Clock, offload: Offload, counting: StoreCallMeter
    ) -> None:
        self._endpoints = address.endpoints
        self._clock = clock
        self._counting = counting
        self._tls = ClientTls(address.tls, clock.monotonic) if address.tls else None
        self._login = Login(address.username, address.password_file, offload)
        self._closing: set[asyncio.Task[None]] = set()
        self._stubs = self._dial()
        self._at = 0

    @property
    def count(self) -> int:
        return len(self._endpoints)

    async def ask(
        self,
        op: str,
        method: Unary[Request, Response],
        request: Request,
        seconds: float = WRITE_SECONDS,
    ) -> MemberResponse[Response]:
        """The first answer of any member, within so many seconds."""

        async def once(member: MemberStubs, left: float) -> Response:
            return await method(member)(request, timeout=left, metadata=self._login.metadata())

        with self._counting(op):
            return await self._attempts(once, seconds)

    async def call(
        self,
        op: str,
        method: Unary[Request, Response],
        request: Request,
        seconds: float = WRITE_SECONDS,
    ) -> Response:
        """As `ask`, for what can be repeated without a thought."""
        return (await self.ask(op, method, request, seconds)).response

    async def exchange(
        self, op: str, method: Stream[Request, Response], request: Request, seconds: float
    ) -> Response:
        """One request and one answer over a stream that ends with it."""

        async def once(member: MemberStubs, left: float) -> Response:
            call = method(member)(iter((request,)), timeout=left, metadata=self._login.metadata())
            try:
                async for response in call:
                    return response
            finally:
                call.cancel()
            raise StoreUnavailableError(f"etcd: {member.endpoint} ended a stream")

        with self._counting(op):
            return (await self._attempts(once, seconds)).response

    async def stream(
        self, method: Stream[Request, Response], request: Request
    ) -> AsyncGenerator[Response, None]:
        """The answers of one member until its stream breaks; the next one begins elsewhere."""
        member = self._current()
        try:
            await self._login.ensure(member.auth, ATTEMPT_SECONDS)
            call = method(member)(metadata=self._login.metadata())
            try:
                await call.write(request)
                async with aclosing(_responses(call)) as responses:
                    async for response in responses:
                        yield response
            finally:
                call.cancel()
        except grpc.aio.AioRpcError as error:
            if wants_new_token(error):
                self._login.forget()
            self._leave(member)
            raise fault_of(error) from error
        except asyncio.CancelledError:
            # Letting go of a former channel cancels its streams, which must not look as if
            # their reader had been cancelled.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise StoreUnavailableError(
                f"etcd: the connection to {member.endpoint} was replaced"
            ) from None
        self._leave(member)
        raise StoreUnavailableError(f"etcd: {member.endpoint} ended a stream")

    async def close(self) -> None:
        """Let go of every connection."""
        for member in self._stubs:
            await member.channel.close()
        await asyncio.gather(*self._closing)

    async def _attempts(
        self, once: Callable[[MemberStubs, float], Awaitable[Response]], seconds: float
    ) -> MemberResponse[Response]:
        end = self._clock.monotonic() + seconds
        failures: dict[str, str] = {}
        repeated = logged_in_again = False
        while True:
            member = self._current()
            left = min(ATTEMPT_SECONDS, end - self._clock.monotonic())
            if left <= 0:
                raise self._no_answer(seconds, failures) from TimeoutError()
            try:
                await self._login.ensure(member.auth, left)
                response = await once(member, left)
            except grpc.aio.AioRpcError as error:
                if wants_new_token(error) and not logged_in_again:
                    logged_in_again = True
                    self._login.forget()
                    continue
                if not may_pass(error):
                    raise fault_of(error) from error
                repeated = True
                failures[member.endpoint] = error_words(error)
            else:
                self._counting.term(response.header.raft_term)
                return MemberResponse(response, repeated)
            self._leave(member)
            if len(failures) == len(self._endpoints):
                await asyncio.sleep(ROUND_PAUSE_SECONDS)

    def _no_answer(self, seconds: float, failures: dict[str, str]) -> StoreUnavailableError:
        problems = "; ".join(f"{endpoint}: {words}" for endpoint, words in failures.items())
        problems = problems or "no time was left"
        remedy = _TLS if "handshake failed" in problems else _REACH
        return StoreUnavailableError(
            f"no etcd member answered within {seconds:.1f} s ({problems}): {remedy}"
        )

    def _current(self) -> MemberStubs:
        if self._tls is not None and self._tls.fresh():
            former, self._stubs = self._stubs, self._dial()
            for member in former:
                closing = asyncio.ensure_future(member.channel.close(WRITE_SECONDS))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        return self._stubs[self._at]

    def _leave(self, member: MemberStubs) -> None:
        """Use the next member, unless another call has moved on already."""
        if self._stubs[self._at] is member:
            self._at = (self._at + 1) % len(self._stubs)

    def _dial(self) -> list[MemberStubs]:
        credentials = self._tls.credentials if self._tls is not None else None
        return [MemberStubs(endpoint, credentials) for endpoint in self._endpoints]


async def _responses(
    call: grpc.aio.StreamStreamCall[Request, Response],
) -> AsyncGenerator[Response, None]:
    async for response in call:
        yield response


def _channel(endpoint: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
    return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)
