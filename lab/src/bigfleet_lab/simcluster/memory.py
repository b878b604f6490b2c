"""A line inside one process: the shard's end is the `Stream` a session is served on.

Bounded on the way to the cluster, so that a cluster that stops reading is felt by the shard. There
are not threads and no clock, and nothing happens by itself: it belongs to whatever event loop runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from google.protobuf.message import DecodeError

from bigfleet.wire.session import StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb

_DEPTH = 64


class MemoryStream:
    """The shard's end."""

    def __init__(self, line: MemoryLine, identity: str | None) -> None:
        self._line = line
        self.identity = identity

    async def receive(self) -> pb.OperatorMessage | None:
        """The next frame; None when the operator closed its side."""
        return await self._line.taken()

    async def send(self, message: pb.ShardMessage) -> None:
        """Hand over a frame; waits while the cluster does not read."""
        await self._line.offer(message)


class MemoryLine:
    """The cluster's end."""

    def __init__(self, identity: str | None = None) -> None:
        self.stream = MemoryStream(self, identity)
        self._up: asyncio.Queue[pb.OperatorMessage | None] = asyncio.Queue()
        self._down: asyncio.Queue[pb.ShardMessage] = asyncio.Queue(_DEPTH)
        self._ended = asyncio.Event()
        self._end: StreamClosedError | None = None
        self._cut = False

    async def send(self, message: pb.OperatorMessage) -> None:
        """Hand over a frame."""
        self._check()
        # A copy, as a network would make: what is changed here later is not changed there.
        self._up.put_nowait(pb.OperatorMessage.FromString(message.SerializeToString()))

    async def send_bytes(self, frame: bytes) -> None:
        """Hand over bytes; what is not a message ends the line, as it does with gRPC."""
        self._check()
        try:
            self._up.put_nowait(pb.OperatorMessage.FromString(frame))
        except DecodeError as error:
            self.end("INTERNAL", str(error))
            self._cut = True
            self._up.put_nowait(None)

    async def receive(self) -> pb.ShardMessage | None:
        """The next frame; None when the shard ended it in order."""
        message = await self._or_end(self._down)
        if message is not None:
            return message
        if self._end is not None:
            raise self._end
        return None

    async def close(self) -> None:
        """Nothing more will come from here."""
        self._up.put_nowait(None)

    def drop(self) -> None:
        """Cut it."""
        self._cut = True
        self.end("CANCELLED", "the line was cut")
        self._up.put_nowait(None)

    # -- the shard's side ------------------------------------------------------------------------

    async def taken(self) -> pb.OperatorMessage | None:
        """What the cluster sent; None at its end. A cut line is an error, not an end."""
        message = await self._up.get()
        if message is None and self._cut:
            raise StreamClosedError("CANCELLED", "the line was cut")
        return message

    async def offer(self, message: pb.ShardMessage) -> None:
        """Something for the cluster."""
        self._check()
        copy = pb.ShardMessage.FromString(message.SerializeToString())
        putting = asyncio.ensure_future(self._down.put(copy))
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((putting, ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            taken = putting.done() and not putting.cancelled()
            putting.cancel()
            ending.cancel()
        if not taken:
            raise self._end or StreamClosedError("OK")

    def end(self, code: str = "OK", text: str = "") -> None:
        """The shard's word on how it ended; the first one stands."""
        if not self._ended.is_set():
            self._end = None if code == "OK" else StreamClosedError(code, text)
            self._ended.set()

    def _check(self) -> None:
        if self._ended.is_set():
            raise self._end or StreamClosedError("OK", "the shard ended the session")

    async def _or_end(self, queue: asyncio.Queue[pb.ShardMessage]) -> pb.ShardMessage | None:
        """The next of the queue; None when the line ended and the queue is empty."""
        if not queue.empty():
            return queue.get_nowait()
        if self._ended.is_set():
            return None
        getting = asyncio.ensure_future(queue.get())
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((getting, ending), return_when=asyncio.FIRST_COMPLETED)
            return getting.result() if getting.done() else None
        finally:
            getting.cancel()
            ending.cancel()


Serve = Callable[[MemoryStream], Awaitable[None]]


class MemoryDial:
    """Lines to a shard in this process. `serve` runs one session to its end.

    What it raises ends the line: an error with a `code` (a status or its name) says how.
    """

    def __init__(self, serve: Serve, identity: Callable[[str], str | None] | None = None) -> None:
        self._serve = serve
        self._identity = identity or (lambda cluster_id: None)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, cluster_id: str) -> MemoryLine:
        """A new line, and a session served on its other end."""
        line = MemoryLine(self._identity(cluster_id))
        task = asyncio.ensure_future(self._session(line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return line

    async def close(self) -> None:
        """All sessions end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _session(self, line: MemoryLine) -> None:
        try:
            await self._serve(line.stream)
        except asyncio.CancelledError:
            line.end("UNAVAILABLE", "the shard is gone")
            raise
        except Exception as error:  # noqa: BLE001 - whatever ends a session is told to its cluster
            line.end(code_of(error), str(error))
        else:
            line.end()


def code_of(error: Exception) -> str:
    """The name of the status an error stands for."""
    code = getattr(error, "code", None)
    return str(getattr(code, "name", code or "UNKNOWN"))
