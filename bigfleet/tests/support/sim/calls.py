"""Calls from a shard's process to a provider: `bigfleet.provider.transport.Transport` on the sim.

A request that has left is on its way whatever becomes of its sender; its answer may be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from bigfleet.provider.transport import CallError
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.network import NOWHERE, Network
from sim.process import Process
from sim.provider import ModelProvider
from sim.slots import Kind

Answer = Any
Code = grpc.StatusCode


class Eyes(Protocol):
    """Who looks at what a shard sends."""

    def sends(self, process: Process, kind: Kind, request: Answer) -> None:
        """A mutation leaves."""
        ...

    def answered(self, process: Process, machine_id: str) -> None:
        """Its sender no longer waits."""
        ...


class SimCalls:
    """One process's line to one provider."""

    def __init__(
        self,
        process: Process,
        host: str,
        provider: ModelProvider,
        net: Network,
        eyes: Eyes | None = None,
    ) -> None:
        self._process = process
        self._host = host
        """The name under which the network knows the caller."""
        self._provider = provider
        self._net = net
        self._eyes = eyes
        self._closed = False

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        """Speculative to Idle."""
        return await self._mutate(Kind.CREATE, request, seconds)

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Configured."""
        return await self._mutate(Kind.CONFIGURE, request, seconds)

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        """Configured to Idle."""
        return await self._mutate(Kind.DRAIN, request, seconds)

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        """Idle to Speculative."""
        return await self._mutate(Kind.DELETE, request, seconds)

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        """One machine."""
        answer: pb.Machine = await self._call(lambda: self._provider.get(request), seconds)
        return answer

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        """Many machines."""
        answer: pb.MachineList = await self._call(lambda: self._provider.listing(request), seconds)
        return answer

    async def close(self) -> None:
        """No more calls."""
        self._closed = True

    async def _mutate(self, kind: Kind, request: Answer, seconds: float) -> pb.TransitionAck:
        note = f"{kind} {request.machine_id} {request.shard_epoch}/{request.sequence_number}"
        self._net.trace.note(self._process.name, note)
        if self._eyes is not None:
            self._eyes.sends(self._process, kind, request)
        try:
            answer: pb.TransitionAck = await self._call(
                lambda: self._provider.mutate(kind, request), seconds
            )
        finally:
            if self._eyes is not None:
                self._eyes.answered(self._process, request.machine_id)
        return answer

    async def _call(self, handle: Callable[[], Answer], seconds: float) -> Answer:
        if self._closed:
            raise CallError(Code.CANCELLED, "the client is closed")
        loop, net = asyncio.get_running_loop(), self._net
        answer: asyncio.Future[Answer] = loop.create_future()
        give_up = CallError(Code.DEADLINE_EXCEEDED, f"no answer within {seconds:g} s")
        deadline = loop.call_later(seconds, _settle, answer, give_up, context=NOWHERE)
        rng, weather = net.rng, net.weather
        if rng.random() < weather.lost_request:
            self._lose(answer)
        else:
            self._travel(handle, answer)
        if rng.random() < weather.duplicate:
            loop.call_later(net.delay() * 3, self._repeat, handle, context=NOWHERE)
        try:
            return await answer
        finally:
            deadline.cancel()

    def _travel(self, handle: Callable[[], Answer], answer: asyncio.Future[Answer]) -> None:
        loop, net = asyncio.get_running_loop(), self._net

        def arrive() -> None:
            if net.is_cut(self._host, self._provider.name):
                self._lose(answer)
                return
            if not self._provider.up:
                refused = CallError(Code.UNAVAILABLE, "connection refused")
                loop.call_later(net.delay(), _settle, answer, refused, context=NOWHERE)
                return
            try:
                result = handle()
            except CallError as error:
                result = error
            if net.rng.random() < net.weather.lost_answer:
                self._lose(answer)
            else:
                loop.call_later(net.delay(), _settle, answer, result, context=NOWHERE)

        loop.call_later(net.delay(), arrive, context=NOWHERE)

    def _repeat(self, handle: Callable[[], Answer]) -> None:
        """The network delivers a request a second time; no caller waits for that answer."""
        try:
            if self._provider.up:
                handle()
        except CallError:
            return

    def _lose(self, answer: asyncio.Future[Answer]) -> None:
        """Nothing comes back: the connection breaks, or the caller waits for its deadline."""
        if self._net.rng.random() < 0.5:
            broken = CallError(Code.UNAVAILABLE, "the connection broke")
            loop = asyncio.get_running_loop()
            loop.call_later(self._net.delay(), _settle, answer, broken, context=NOWHERE)


def _settle(answer: asyncio.Future[Answer], result: Answer) -> None:
    if answer.done():
        return
    if isinstance(result, CallError):
        answer.set_exception(result)
        # The caller may have died; no party is to blame for not looking.
        answer.exception()
    else:
        answer.set_result(result)
