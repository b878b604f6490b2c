"""One stream from Hello to its end: the duties of an operator.

Three things go out: answers, through a bounded outbox that drops the newest when it is full; one
roll-up that may be due, made when it is sent, so that the one that waited is always the newest; and
what the nodes look like, once the shard has shown that it knows such frames. Frames that come in
are handed on as they are; acknowledgements are looked at here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from bigfleet.operator.demand.rollup import Built
from bigfleet.wire.session import ComparisonSupport, SessionStream, StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb

OUTBOX: Final = 256
GREETING_SECONDS: Final = 30.0
"""How long a shard may take to answer the Hello; a stream that stays silent is given up then."""
PROTOCOL: Final = "v1alpha1"


@dataclass(frozen=True, slots=True)
class SessionIntervals:
    """Seconds."""

    rollup: float = 10.0
    prompt: float = 0.3
    """From a change of demand to the roll-up that tells of it."""
    prompt_gap: float = 1.0
    """Between two roll-ups that do not wait for the beat."""
    observe: float = 0.5
    """From a change of a node to the frame that tells of it."""
    observe_all: float = 60.0


class SessionDelegate(Protocol):
    """The cluster behind a session."""

    def hello(self) -> pb.Hello:
        """Who calls."""

    def roll_up(self, *, comparisons: bool) -> Built:
        """All demand, as it is now."""

    def rolled_up(self, built: Built, seconds: float) -> None:
        """A roll-up was handed over, which took so long."""

    @property
    def has_comparisons(self) -> bool:
        """Whether any row uses Gt or Lt."""

    def taken(self, timestamp: int) -> None:
        """The shard took this roll-up."""

    def rejected(self, reason: str) -> None:
        """The shard refused a roll-up."""

    def not_expressible(self) -> None:
        """This shard cannot be told of rows with Gt or Lt."""

    def hear(self, message: pb.ShardMessage) -> None:
        """A frame of the shard other than an acknowledgement."""

    def observations(self, *, full: bool) -> pb.NodeObservations | None:
        """What the nodes look like; None when there is nothing new."""

    def dropped(self) -> None:
        """An answer was lost to a full outbox."""

    def greeted(self) -> None:
        """The shard has answered the Hello: the session is open."""


class ShardSession:
    """One stream."""

    def __init__(
        self, host: SessionDelegate, stream: SessionStream, rhythm: SessionIntervals
    ) -> None:
        self._host, self._stream, self._rhythm = host, stream, rhythm
        self._outbox: deque[pb.OperatorMessage] = deque()
        self._work = asyncio.Event()
        self._rollup_due = False
        self._unanswered: deque[int] = deque()
        self._comparing = ComparisonSupport(rhythm.rollup)
        self.demand_changed = asyncio.Event()
        self.nodes_changed = asyncio.Event()
        self.greeted = False
        """The shard acknowledged the Hello."""
        self.good = False
        """The shard answered to a roll-up: reconnecting may start from the smallest pause."""
        self.acknowledged = False
        """The shard took a roll-up, or holds it."""
        self.refusal = ""
        """Why the shard refused the newest roll-up of which it spoke; empty where it did not."""
        self._knows_additions = asyncio.Event()

    async def run(self) -> None:
        """Until the stream ends; a StreamClosedError says how, if not in order."""
        await self._stream.send(pb.OperatorMessage(hello=self._host.hello()))
        tasks = [
            asyncio.ensure_future(work)
            for work in (self._read(), self._write(), self._beat(), self._observe())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        # The first task in the list that ended by itself says why: reading hears the shard's words.
        for task, result in zip(tasks, ended, strict=True):
            if task in done and isinstance(result, BaseException):
                raise result

    def post(self, message: pb.OperatorMessage) -> None:
        """An answer for the shard. The newest is lost when too many wait: the shard asks again."""
        if len(self._outbox) >= OUTBOX:
            self._host.dropped()
            return
        self._outbox.append(message)
        self._work.set()

    def roll_up(self) -> None:
        """A roll-up is due now."""
        self._rollup_due = True
        self._work.set()

    # -- the tasks -------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(GREETING_SECONDS) as patience:
                while (message := await self._stream.receive()) is not None:
                    self._hear(message)
                    if self.greeted:
                        patience.reschedule(None)
        except TimeoutError:
            words = f"the shard did not answer the Hello within {GREETING_SECONDS:g} s"
            raise StreamClosedError("DEADLINE_EXCEEDED", words) from None

    def _hear(self, message: pb.ShardMessage) -> None:
        if message.WhichOneof("payload") == "ack":
            self._acknowledged(message.ack)
        else:
            self._host.hear(message)

    async def _write(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._outbox or self._rollup_due:
                if self._outbox:
                    await self._stream.send(self._outbox.popleft())
                else:
                    self._rollup_due = False
                    await self._send_rollup()

    async def _beat(self) -> None:
        """Roll-ups: at once, then regularly, and a moment after demand changed."""
        loop, rhythm = asyncio.get_running_loop(), self._rhythm
        self.demand_changed.clear()
        self.roll_up()
        next_beat, last = loop.time() + rhythm.rollup, loop.time()
        while True:
            due = next_beat
            if await self._change_before(next_beat):
                due = min(next_beat, max(loop.time() + rhythm.prompt, last + rhythm.prompt_gap))
            await asyncio.sleep(due - loop.time())
            self.demand_changed.clear()
            last = loop.time()
            self.roll_up()
            if last >= next_beat:
                next_beat += rhythm.rollup

    async def _change_before(self, when: float) -> bool:
        try:
            async with asyncio.timeout_at(when):
                await self.demand_changed.wait()
        except TimeoutError:
            return False
        return True

    async def _observe(self) -> None:
        """Nodes: all at first and now and then, in between what changed."""
        loop, rhythm = asyncio.get_running_loop(), self._rhythm
        await self._knows_additions.wait()
        full_at = loop.time()
        while True:
            full = loop.time() >= full_at
            if full:
                full_at = loop.time() + rhythm.observe_all
            self.nodes_changed.clear()
            seen = self._host.observations(full=full)
            if seen is not None:
                self.post(pb.OperatorMessage(node_observations=seen))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(full_at):
                    await self.nodes_changed.wait()
                    await asyncio.sleep(rhythm.observe)

    # -- frames ----------------------------------------------------------------------------------

    async def _send_rollup(self) -> None:
        loop = asyncio.get_running_loop()
        if self._host.has_comparisons and not self._comparing.sends(loop.time()):
            self._host.not_expressible()
        built = self._host.roll_up(comparisons=not self._comparing.left_out)
        self._unanswered.append(built.timestamp)
        began = loop.time()
        await self._stream.send_bytes(built.frame)
        self._host.rolled_up(built, loop.time() - began)

    def _acknowledged(self, ack: pb.Acknowledgement) -> None:
        if ack.echo == "hello":
            if not self.greeted:
                self.greeted = True
                self._host.greeted()
            return
        if ack.echo not in ("rollup", "rollup_rejected"):
            return
        self.good = True
        self._comparing.acknowledged()
        timestamp = ack.rollup_timestamp_unix_nanos
        if timestamp:
            self._knows_additions.set()
        elif self._unanswered:
            # Which one is not said; the oldest is in every one it could be.
            timestamp = self._unanswered[0]
        while self._unanswered and self._unanswered[0] <= timestamp:
            self._unanswered.popleft()
        if ack.echo == "rollup_rejected":
            self.refusal = ack.reason or "no reason given"
            self._host.rejected(ack.reason)
            return
        self.acknowledged, self.refusal = True, ""
        if not ack.held:
            self._host.taken(timestamp)
