"""One session of a cluster with its shard: the duties of an operator on the stream.

Hello first. Then three things at once: frames are read and handed to the cluster; answers go out
through a bounded outbox that drops the newest when full; and one roll-up may be due at a time,
regularly and, when demand changed, a moment after. A roll-up is made when it is sent, so the one
that was waiting is always the newest. Observations are sent only to a shard that has shown it
knows them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Final

from bigfleet.wire.session import ComparisonSupport, SessionStream
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.behaviour import PROTOCOL
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.demand_changes import Change
from bigfleet_lab.simcluster.faults import Garbage, garbage

OUTBOX: Final = 256
_UNANSWERED_KEPT: Final = 64


class Session:
    """One stream, from Hello to its end."""

    def __init__(self, cluster: SimCluster, stream: SessionStream) -> None:
        self._cluster, self._stream = cluster, stream
        self._outbox: deque[pb.OperatorMessage] = deque()
        self._raw: deque[bytes] = deque()
        self._work = asyncio.Event()
        self._changed = asyncio.Event()
        self._node_news = asyncio.Event()
        self._rollup_due = False
        self._sent: dict[int, float] = {}
        self._comparing = ComparisonSupport(cluster.behaviour.rollup_seconds)
        self.greeted = False
        """The shard acknowledged the Hello."""
        self.good = False
        """The shard acknowledged a roll-up: reconnecting may start from the smallest delay."""
        self.knows_additions = asyncio.Event()
        """Set once the shard has shown that it does."""

    async def run(self) -> None:
        """Until the stream ends; a StreamClosedError says how, if not in order."""
        cluster = self._cluster
        cluster.stats.sessions_opened += 1
        await self._stream.send(self._hello())
        cluster.attach(self.post)
        cluster.on_demand_change.append(self._changed.set)
        cluster.on_node_change.append(self._node_news.set)
        self._tasks = [
            asyncio.ensure_future(work)
            for work in (self._read(), self._write(), self._beat(), self._observe())
        ]
        try:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cluster.on_demand_change.remove(self._changed.set)
            cluster.on_node_change.remove(self._node_news.set)
            cluster.detach()
            for task in self._tasks:
                task.cancel()
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        # The first task in the list that ended by itself says why: reading hears the shard's words.
        for task, result in zip(self._tasks, ended, strict=True):
            if task in done and isinstance(result, BaseException):
                raise result

    def post(self, message: pb.OperatorMessage) -> None:
        """An answer for the shard. The newest is lost when too many wait: the shard asks again."""
        if len(self._outbox) >= OUTBOX:
            self._cluster.stats.answers_dropped += 1
            return
        self._outbox.append(message)
        self._work.set()

    def roll_up(self) -> None:
        """A roll-up is due now."""
        self._rollup_due = True
        self._work.set()

    def send_garbage(self, kind: Garbage) -> None:
        """A frame that means nothing good."""
        cluster = self._cluster
        self._raw.append(garbage(kind, cluster.id, cluster.timestamp(), cluster.rng))
        self._work.set()

    def drop(self) -> None:
        """Cut the stream."""
        self._stream.drop()

    def wake(self) -> None:
        """Faults changed: look again at what may be sent."""
        self._work.set()

    # -- the tasks -------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            await self._cluster.faults.may_read()
            message = await self._stream.receive()
            if message is None:
                return
            if message.WhichOneof("payload") == "ack":
                self._acknowledged(message.ack)
            else:
                self._cluster.hear(message)

    async def _write(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._raw or (self._sendable() and not self._cluster.faults.silent):
                if self._raw:
                    self._cluster.stats.garbage_sent += 1
                    await self._stream.send_bytes(self._raw.popleft())
                elif self._outbox:
                    await self._stream.send(self._outbox.popleft())
                else:
                    self._rollup_due = False
                    await self._stream.send(self._rollup())

    async def _beat(self) -> None:
        """Roll-ups: at once, then regularly, and a moment after demand changed."""
        loop, behaviour = asyncio.get_running_loop(), self._cluster.behaviour
        self._changed.clear()
        self.roll_up()
        next_beat, last = loop.time() + behaviour.rollup_seconds, loop.time()
        while True:
            if await self._change_before(next_beat):
                behaviour = self._cluster.behaviour
                due = max(
                    loop.time() + behaviour.prompt_seconds, last + behaviour.prompt_gap_seconds
                )
                if due < next_beat:
                    await asyncio.sleep(due - loop.time())
                    self._changed.clear()
                    last = loop.time()
                    self.roll_up()
                else:
                    await asyncio.sleep(max(0.0, next_beat - loop.time()))
            if loop.time() >= next_beat:
                if self._cluster.behaviour.churn:
                    self._cluster.change(Change.CHURN, self._cluster.behaviour.churn)
                self._changed.clear()
                last = loop.time()
                self.roll_up()
                next_beat += max(self._cluster.behaviour.rollup_seconds, 0.001)

    async def _change_before(self, when: float) -> bool:
        loop = asyncio.get_running_loop()
        if not self._cluster.behaviour.prompt_seconds:
            await asyncio.sleep(max(0.0, when - loop.time()))
            return False
        try:
            async with asyncio.timeout_at(when):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _observe(self) -> None:
        """Observations: all at first and now and then, in between what changed."""
        loop, cluster = asyncio.get_running_loop(), self._cluster
        await self.knows_additions.wait()
        full_at = loop.time()
        while True:
            full = loop.time() >= full_at
            if full:
                full_at = loop.time() + cluster.behaviour.full_observation_seconds
            self._node_news.clear()
            seen = cluster.observations(full=full)
            if seen is not None:
                cluster.stats.observations += 1
                self.post(pb.OperatorMessage(node_observations=seen))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(full_at):
                    await self._node_news.wait()
                    await asyncio.sleep(cluster.behaviour.observe_seconds)

    # -- frames ----------------------------------------------------------------------------------

    def _sendable(self) -> bool:
        return bool(self._outbox) or self._rollup_due

    def _hello(self) -> pb.OperatorMessage:
        cluster = self._cluster
        hello = pb.Hello(
            cluster_id=cluster.id if cluster.faults.hello_id is None else cluster.faults.hello_id,
            protocol_version=PROTOCOL,
            software_version=cluster.behaviour.software_version,
        )
        return pb.OperatorMessage(hello=hello)

    def _rollup(self) -> pb.OperatorMessage:
        cluster = self._cluster
        timestamp = cluster.timestamp()
        now = cluster.clock.monotonic()
        told = not cluster.rollups.has_comparisons or self._comparing.sends(now)
        claimed = cluster.faults.rollup_id
        message = cluster.rollups.message(
            cluster.id if claimed is None else claimed, timestamp, comparisons=told
        )
        cluster.stats.rollup_seconds.append(cluster.clock.monotonic() - now)
        self._sent[timestamp] = now
        while len(self._sent) > _UNANSWERED_KEPT:
            del self._sent[next(iter(self._sent))]
        cluster.stats.rollups_sent += 1
        cluster.stats.rows_sent += len(message.rollup.needs)
        return message

    def _acknowledged(self, ack: pb.Acknowledgement) -> None:
        stats = self._cluster.stats
        if ack.echo == "hello":
            self.greeted = True
        elif ack.echo in ("rollup", "rollup_rejected"):
            self.good = True
            self._comparing.acknowledged()
            if ack.rollup_timestamp_unix_nanos and self._cluster.behaviour.knows_additions:
                self.knows_additions.set()
            if ack.echo == "rollup_rejected":
                stats.rollups_rejected += 1
                stats.rejection = ack.reason
            else:
                stats.rollups_acknowledged += 1
                stats.rollups_held += ack.held
            sent = self._sent.pop(ack.rollup_timestamp_unix_nanos, None)
            if sent is not None:
                stats.latencies.append(self._cluster.clock.monotonic() - sent)
