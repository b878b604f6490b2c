"""Calls to providers are counted once each, by method and by how they ended."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from bigfleet.provider import CallError
from bigfleet.shard.metered import MeteredTransport
from bigfleet_api.v1alpha1 import provider_pb2 as pb

REQUESTS = {
    "Create": pb.CreateRequest(),
    "Configure": pb.ConfigureRequest(),
    "Drain": pb.DrainRequest(),
    "Delete": pb.DeleteRequest(),
    "Get": pb.MachineRef(),
    "List": pb.ListFilter(),
}


class Line:
    """A transport that answers, fails or hangs, half a second later by the timer."""

    def __init__(self, error: Exception | None = None, *, hangs: bool = False) -> None:
        self.error, self.hangs = error, hangs
        self.now = 0.0
        self.closed = False

    async def _answer(self, answer: object) -> object:
        self.now += 0.5
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return answer

    async def create(self, request: object, seconds: float) -> object:
        return await self._answer(pb.TransitionAck(operation_id="1"))

    configure = drain = delete = create

    async def get(self, request: object, seconds: float) -> object:
        return await self._answer(pb.Machine(id="m"))

    async def list(self, request: object, seconds: float) -> object:
        return await self._answer(pb.MachineList(machines=[pb.Machine(id="m")]))

    async def close(self) -> None:
        self.closed = True


class RawLine(Line):
    """One that also lists bytes."""

    async def list_raw(self, request: object, seconds: float) -> object:
        return await self._answer(b"raw")


def metered(line: Line) -> tuple[MeteredTransport, list[tuple[str, str, str, float]]]:
    seen: list[tuple[str, str, str, float]] = []
    count = lambda *told: seen.append(told)  # noqa: E731
    return MeteredTransport(line, "p", count, lambda: line.now), seen  # type: ignore[arg-type]


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_call_that_is_answered_is_ok(method: str) -> None:
    transport, seen = metered(Line())
    answer = await getattr(transport, method.lower())(REQUESTS[method], 1.0)
    assert answer
    assert seen == [("p", method, "OK", 0.5)]


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_call_that_fails_is_counted_with_its_status(method: str) -> None:
    transport, seen = metered(Line(CallError(grpc.StatusCode.UNAVAILABLE, "away")))
    with pytest.raises(CallError):
        await getattr(transport, method.lower())(REQUESTS[method], 1.0)
    assert seen == [("p", method, "UNAVAILABLE", 0.5)]


async def test_a_call_that_is_given_up_is_counted_as_cancelled() -> None:
    transport, seen = metered(Line(hangs=True))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await transport.get(pb.MachineRef(id="m"), 1.0)
    assert seen == [("p", "Get", "CANCELLED", 0.5)]


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        (RawLine(), b"raw"),
        (Line(), pb.MachineList(machines=[pb.Machine(id="m")]).SerializeToString()),
    ],
)
async def test_bytes_of_a_list_are_had_from_any_transport(line: Line, raw: bytes) -> None:
    transport, seen = metered(line)
    assert await transport.list_raw(pb.ListFilter(), 1.0) == raw
    assert seen == [("p", "List", "OK", 0.5)]


async def test_closing_is_passed_on() -> None:
    line = Line()
    transport, seen = metered(line)
    await transport.close()
    assert line.closed
    assert seen == []
