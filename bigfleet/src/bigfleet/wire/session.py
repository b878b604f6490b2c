"""The operator's end of a session: one stream to a shard, and the pauses between two of them.

A stream is cut or ends once, and a caller that waits on it then gets a StreamClosedError with the
status. It is the status the shard gave: where a write fails because the stream has ended, the
library puts one of its own in its place (grpc/grpc issue 36066).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any, Final, Protocol, TypeVar

import grpc
import grpc.aio

from bigfleet.wire.backoff import Backoff
from bigfleet_api.v1alpha1 import shard_pb2 as pb

METHOD: Final = "/bigfleet.v1alpha1.Shard/Session"
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
COMPARING_TRIES: Final = 3
_FAREWELL_SECONDS: Final = 1.0
_STATUS_SECONDS: Final = 1.0
"""How long the shard's status may come after the library's own."""
LOST_STATUS: Final = "Internal error from Core"
"""What the library says where a write failed, whatever the stream's end was."""

_T = TypeVar("_T")
_Call = grpc.aio.StreamStreamCall[bytes, pb.ShardMessage]


class StreamClosedError(Exception):
    """The stream has ended. `code` is the name of the gRPC status, as in `ABORTED`."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


class SessionStream(Protocol):
    """One session's transport, seen from the cluster. It ends once, with a StreamClosedError."""

    async def send(self, message: pb.OperatorMessage) -> None:
        """Hand over a frame; returns when the transport has taken it."""

    async def send_bytes(self, frame: bytes) -> None:
        """Hand over bytes as a frame, whatever they are."""

    async def receive(self) -> pb.ShardMessage | None:
        """The next frame; None when the shard ended the session without complaint."""

    async def close(self) -> None:
        """Say that nothing more will come, and wait for the shard's end for a moment."""

    def drop(self) -> None:
        """Cut it at once, as a crash would."""


class SessionBackoff:
    """How long to wait before the next attempt.

    From half a second, doubled up to thirty, each shortened at random so that a thousand clusters
    do not come back at once. Starts over after a good session, but not after one that another
    process of the same cluster took over, or may have: two of them would fight forever.
    """

    def __init__(self, rng: Random) -> None:
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, rng)

    def after(self, *, good: bool, code: str, text: str = "") -> float:
        """The pause after a session that ended like this."""
        if good and code != "ABORTED" and text != LOST_STATUS:
            self._backoff.reset()
        return self._backoff.next()


class ComparisonSupport:
    """Whether rows with Gt or Lt go into the roll-ups of one session.

    A shard of before them refuses a roll-up that has any, and says nothing. So they are left out
    for the rest of the session after three roll-ups with them went without any acknowledgement: at
    their regular beat, because a shard that is busy for some seconds can read them all the same.
    """

    def __init__(self, beat: float) -> None:
        self._patience = (COMPARING_TRIES - 1) * beat
        self._unanswered = 0
        self._since = 0.0
        self.left_out = False

    def sends(self, now: float) -> bool:
        """Whether such rows, of which there are some, are in the roll-up that is sent now."""
        if not self._unanswered:
            self._since = now
        if self._unanswered >= COMPARING_TRIES and now - self._since >= self._patience:
            self.left_out = True
        self._unanswered += not self.left_out
        return not self.left_out

    def acknowledged(self) -> None:
        """The shard answered a roll-up, whatever it said."""
        self._unanswered = 0


def open_session_stream(channel: grpc.aio.Channel) -> GrpcSessionStream:
    """A new stream on a connection."""
    start: grpc.aio.StreamStreamMultiCallable[bytes, pb.ShardMessage] = channel.stream_stream(
        METHOD, None, pb.ShardMessage.FromString
    )
    return GrpcSessionStream(start())


class GrpcSessionStream:
    """One stream.

    Who is cancelled while it reads or writes does not cancel the stream with it, as the library
    would: the stream has to outlive its tasks for a moment, to end in order.
    """

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._reading: asyncio.Future[object] | None = None
        self._status: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        call.add_done_callback(self._finish)

    async def send(self, message: pb.OperatorMessage) -> None:
        """Hand over a frame; returns when the transport has taken it."""
        await self.send_bytes(message.SerializeToString())

    async def send_bytes(self, frame: bytes) -> None:
        """Hand over bytes as a frame."""
        writing = asyncio.ensure_future(self._call.write(frame))
        writing.add_done_callback(_looked_at)
        try:
            await asyncio.shield(writing)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
            raise await self._ended() from None
        except asyncio.CancelledError:
            await self._raise_if_own()
            raise

    async def receive(self) -> pb.ShardMessage | None:
        """The next frame; None when the shard ended it in order."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
            self._reading.add_done_callback(_looked_at)
        reading = self._reading
        try:
            message = await asyncio.shield(reading)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise await self._ended() from None
        except asyncio.CancelledError:
            await self._raise_if_own()
            raise
        finally:
            if reading.done():
                self._reading = None
        if isinstance(message, pb.ShardMessage):
            return message
        if message is None:
            # What the library hands over instead of bytes that are not a message. The call goes on.
            self.drop()
            raise StreamClosedError("INTERNAL", "a frame of the shard cannot be decoded")
        ended = await self._ended()
        if ended.code == "OK":
            return None
        raise ended

    async def close(self) -> None:
        """Nothing more will come; the shard has a moment to end it in order."""
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await self._call.done_writing()
                while await self.receive() is not None:
                    pass
        except (TimeoutError, StreamClosedError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        self.drop()

    def drop(self) -> None:
        """Cut it at once."""
        self._call.cancel()

    async def _raise_if_own(self) -> None:
        # Cutting the call cancels who waits on it, which must not look like a cancelled task.
        task = asyncio.current_task()
        if self._call.done() and task is not None and not task.cancelling():
            raise await self._ended() from None

    def _finish(self, call: _Call) -> None:
        """The call has a status: once for the shard's, and perhaps once for the library's own."""
        code, text = _at_once(call.code()), _at_once(call.details()) or ""
        if text != LOST_STATUS and not self._status.done():
            self._status.set_result((code.name, text))

    async def _ended(self) -> StreamClosedError:
        await self._call.code()
        try:
            async with asyncio.timeout(_STATUS_SECONDS):
                return StreamClosedError(*await asyncio.shield(self._status))
        except TimeoutError:
            return StreamClosedError("INTERNAL", LOST_STATUS)


def _at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine gives that has nothing to wait for: the next status would be another."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: _T = done.value
        return value
    coroutine.close()
    raise RuntimeError("a call that is done keeps who asks for its status waiting")


def _looked_at(task: asyncio.Future[Any]) -> None:
    """There may be no caller left to read how it ended."""
    if not task.cancelled():
        task.exception()
