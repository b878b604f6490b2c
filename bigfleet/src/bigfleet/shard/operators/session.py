"""One stream from its Hello to its end.

Four tasks: one reads and routes, one writes what is in the outbox, one takes roll-ups, one feeds
the replay in as room appears. Answers are handled where they are read; a roll-up goes through a
slot that holds one, in which a newer replaces a waiting one. So roll-ups keep their order and
answers overtake slow roll-ups. The first of these tasks to fail ends the session, and the part that
waits for an answer learns so at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

import grpc

from bigfleet.observe.process import Clock
from bigfleet.shard.operators.errors import BlobError, NoSessionError, SessionEnd
from bigfleet.shard.operators.messages import Blob
from bigfleet.shard.operators.outbox import Outbox, OutboxFullError
from bigfleet.shard.ports import OversizedRollUp, Stream
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2
from bigfleet_base.identifiers import SHOWN_OF_ERRORS, cut, shortened

_FLUSH_SECONDS: Final = 5.0
"""How long an operator that closed its side may take to read what it is still owed."""
_SECOND_NS: Final = 1_000_000_000
_log = logging.getLogger(__name__)


class SessionHost(Protocol):
    """What a session asks of those around it."""

    def hello_ack(self) -> shard_pb2.ShardMessage:
        """The answer to a Hello."""

    async def turn(self) -> None:
        """Returns when something that is in no hurry may be done."""

    def frame_now(self, cluster: str, machine_id: str) -> shard_pb2.ShardMessage | None:
        """What a cluster is told of a machine at this moment, if anything."""

    async def take_rollup(
        self, session: OperatorSession, rollup: capacity_pb2.ClusterCapacityNeeds
    ) -> shard_pb2.Acknowledgement | None:
        """Take a roll-up and answer it."""

    def refuse_rollup(
        self, cluster: str, reason: str, timestamp: int = 0, limit: str = ""
    ) -> shard_pb2.Acknowledgement:
        """Count and log a roll-up that is not looked at; `limit` is the one that it exceeds."""

    def reclaim_acked(self, cluster: str, ack: shard_pb2.ReclaimAck) -> None:
        """An operator says how far a reclaim has come."""

    def nodes_observed(self, session: OperatorSession, seen: shard_pb2.NodeObservations) -> None:
        """An operator says what it sees of its nodes."""


class OperatorSession:
    """The open session of one cluster."""

    def __init__(
        self, stream: Stream, hello: shard_pb2.Hello, host: SessionHost, clock: Clock, bound: int
    ) -> None:
        self.cluster = hello.cluster_id
        self.software_version = hello.software_version
        self.uncordoned: set[str] = set()
        """Machines whose nodes this operator was asked to uncordon."""
        self.taken_back: set[str] = set()
        """Machines this operator took for its own and was told it does not have."""
        self._stream = stream
        self._host = host
        self._clock = clock
        self._outbox: Outbox[shard_pb2.ShardMessage] = Outbox(bound)
        self._replay: OrderedDict[str, None] = OrderedDict()
        self._to_feed = asyncio.Event()
        self._waiting: capacity_pb2.ClusterCapacityNeeds | None = None
        self._arrived = asyncio.Event()
        self._rested = asyncio.Event()
        self._rested.set()
        self._requests: dict[str, asyncio.Future[Blob]] = {}
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether it takes nothing any more."""
        return self._end.done()

    async def run(self, replay: Iterable[str]) -> None:
        """Serve the stream; returns when the operator closed it, raises what else ended it."""
        for machine_id in replay:
            self.feed(machine_id)
        self.send(self._host.hello_ack())
        tasks = [
            asyncio.ensure_future(work)
            for work in (self._write(), self._feed(), self._work(), self._read())
        ]
        for task in tasks:
            task.add_done_callback(self._stopped)
        try:
            await self._end
        finally:
            self.end(None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def end(self, error: BaseException | None) -> None:
        """End with an error, or as if the operator had closed; the first end stands."""
        if not self._end.done():
            if error is None:
                self._end.set_result(None)
            else:
                self._end.set_exception(error)
        requests, self._requests = self._requests, {}
        for answer in requests.values():
            if not answer.done():
                answer.set_exception(
                    NoSessionError(
                        f"the session of cluster {self.cluster!r} ended before it answered"
                    )
                )

    def send(self, message: shard_pb2.ShardMessage, key: str = "") -> bool:
        """Queue a frame; False when the session has ended, or ends because there is no room."""
        if self.ended:
            return False
        try:
            self._outbox.put(message, key)
        except OutboxFullError as error:
            self.end(SessionEnd(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)))
            return False
        if message.HasField("node_state_update"):
            # What is queued is newer than what the replay wanted to say.
            self._replay.pop(message.node_state_update.machine_id, None)
        return True

    def unsent(self) -> list[shard_pb2.ShardMessage]:
        """Frames that will not be sent any more, once it has ended."""
        return self._outbox.waiting()

    def feed(self, machine_id: str) -> None:
        """Tell of a machine when there is room, as it is then."""
        self._replay[machine_id] = None
        self._to_feed.set()

    async def ask(self, request: shard_pb2.BootstrapRequest, seconds: float) -> Blob:
        """Ask for a node's data and wait for it so long; TimeoutError after that."""
        if not self.send(shard_pb2.ShardMessage(bootstrap_request=request)):
            raise NoSessionError(f"the session of cluster {self.cluster!r} has ended")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Blob] = loop.create_future()
        self._requests[request.request_id] = answer
        # A plain timer: asked a thousand times a second, `asyncio.timeout` is felt.
        late = loop.call_later(seconds, _too_late, answer)
        try:
            return await answer
        finally:
            late.cancel()
            self._requests.pop(request.request_id, None)

    # -- the four tasks --------------------------------------------------------------------------

    async def _write(self) -> None:
        while True:
            await self._stream.send(await self._outbox.take())
            self._outbox.sent()

    async def _feed(self) -> None:
        while True:
            if not self._replay:
                self._to_feed.clear()
                await self._to_feed.wait()
            await self._outbox.has_room()
            await self._host.turn()
            if self.ended:
                return
            if self._replay:
                machine_id, _ = self._replay.popitem(last=False)
                frame = self._host.frame_now(self.cluster, machine_id)
                if frame is not None:
                    self.send(frame, frame.node_state_update.supersedes_key)

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            rollup, self._waiting = self._waiting, None
            if rollup is not None:
                ack = await self._host.take_rollup(self, rollup)
                if ack is not None:
                    self.send(shard_pb2.ShardMessage(ack=ack))
            if self._waiting is None:
                self._rested.set()

    async def _read(self) -> None:
        while True:
            try:
                message = await self._stream.receive()
            except Exception as error:
                _log.warning(
                    "operator session recv error",
                    extra={"cluster": self.cluster, "error": cut(str(error), SHOWN_OF_ERRORS)},
                )
                raise
            if message is None:
                break
            if isinstance(message, OversizedRollUp):
                self._oversized(message)
            else:
                self._route(message)
        # The operator may have closed its side because it has nothing more to say; what it said
        # last is still taken, and answered if it reads on.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._rested.wait()
                await self._outbox.flushed()
        self.end(None)

    # -- routing ---------------------------------------------------------------------------------

    def _route(self, message: shard_pb2.OperatorMessage) -> None:
        match message.WhichOneof("payload"):
            case "hello":
                self._hello_again(message.hello)
            case "rollup":
                self._rollup(message.rollup)
            case "bootstrap_response":
                self._answered(message.bootstrap_response)
            case "reclaim_ack":
                self._host.reclaim_acked(self.cluster, message.reclaim_ack)
            case "node_observations":
                self._host.nodes_observed(self, message.node_observations)
            case _:
                _log.warning(
                    "operator message handling: a frame without a payload is passed over",
                    extra={"cluster": self.cluster},
                )

    def _hello_again(self, hello: shard_pb2.Hello) -> None:
        if hello.cluster_id != self.cluster:
            raise SessionEnd(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"this is the session of cluster {self.cluster!r}, but a Hello names "
                f"{shortened(hello.cluster_id)}: open one session per cluster",
            )
        self.software_version = hello.software_version or self.software_version
        self.send(self._host.hello_ack())

    def _oversized(self, rollup: OversizedRollUp) -> None:
        self._require_own(rollup.cluster_id)
        ack = self._host.refuse_rollup(
            self.cluster,
            str(rollup.problem),
            rollup.timestamp_unix_nanos,
            rollup.problem.limit,
        )
        self.send(shard_pb2.ShardMessage(ack=ack))

    def _require_own(self, cluster_id: str) -> None:
        if cluster_id != self.cluster:
            reason = (
                f"this is the session of cluster {self.cluster!r}, but the roll-up is of "
                f"{shortened(cluster_id)}: send it in a session of its own"
            )
            self._host.refuse_rollup(self.cluster, reason)
            raise SessionEnd(grpc.StatusCode.INVALID_ARGUMENT, reason)

    def _rollup(self, rollup: capacity_pb2.ClusterCapacityNeeds) -> None:
        self._require_own(rollup.cluster_id)
        self._waiting = rollup
        self._rested.clear()
        self._arrived.set()

    def _answered(self, response: shard_pb2.BootstrapBlobResponse) -> None:
        answer = self._requests.get(response.request_id)
        if answer is None or answer.done():
            return
        if response.error or response.ttl_seconds < 0:
            error = (
                cut(response.error, SHOWN_OF_ERRORS)
                or f"its data has a life of {response.ttl_seconds} s"
            )
            answer.set_exception(BlobError(f"cluster {self.cluster!r}: {error}"))
            return
        ttl = response.ttl_seconds
        expires = self._clock.now() + ttl * _SECOND_NS if ttl else 0
        answer.set_result(Blob(response.user_data, expires))

    def _stopped(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.end(error)


def _too_late(answer: asyncio.Future[Blob]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError("no bootstrap data in time"))
