"""The operators that are connected: one session per cluster, and what can be asked of a cluster.

A new session of a cluster replaces the old one, which is told so. To a cluster without a session
nothing is sent: frames are dropped, requests fail at once, and the replay at the start of the next
session is what makes up for it. A cluster's demand stays when its session ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn, Protocol

import grpc

from bigfleet.model import Machine, Profile
from bigfleet.observe.process import Clock
from bigfleet.shard.operators.errors import NoSessionError, SessionEnd
from bigfleet.shard.operators.frames import Nodes, bootstrap_machine, nodes_seen
from bigfleet.shard.operators.messages import Blob, Instruction
from bigfleet.shard.operators.node_updates import MOMENT_SECONDS, NodeSource, NodeUpdates
from bigfleet.shard.operators.outbox import DEFAULT_BOUND
from bigfleet.shard.operators.replay_throttle import PAUSE_SECONDS, ReplayThrottle
from bigfleet.shard.operators.session import OperatorSession
from bigfleet.shard.ports import OversizedRollUp, Stream
from bigfleet.wire.identity import NO_NAME, cluster_name
from bigfleet.wire.needs import requirements_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2
from bigfleet_base.identifiers import IdentifierError, check_id, cut, shortened

OnReclaimAck = Callable[[str, str, bool, tuple[str, ...]], None]
"""Cluster, instruction id, whether it is the second one, and the nodes it says are not empty."""
OnSession = Callable[[str], None]

HELLO: Final = "hello"
REJECTED: Final = "rollup_rejected"
HELLO_SECONDS: Final = 30.0
"""How long a stream may stay open without saying whose it is."""
_log = logging.getLogger(__name__)


class SessionMetrics(Protocol):
    """What sessions count; the names of the metrics are the registry's."""

    def session_event(self, event: str, active: int) -> None:
        """A session was installed, removed or replaced; so many are open now."""

    def session_identity_rejected(self) -> None:
        """A certificate did not fit the cluster id."""


@dataclass(frozen=True, slots=True)
class TermAndEpoch:
    """What acknowledgements say of the shard, as information."""

    coordinator_term: int = 0
    epoch: int = 0


class RollUpReceiver(Protocol):
    """Takes the demand that sessions bring: `demand.rollups`, which this room does not import."""

    async def take(
        self,
        cluster: str,
        message: capacity_pb2.ClusterCapacityNeeds,
        wanted: Callable[[], bool],
    ) -> shard_pb2.Acknowledgement | None:
        """Take a roll-up and answer it; None when `wanted` said no meanwhile."""

    @property
    def max_rows(self) -> int:
        """How many rows one cluster may ask for."""

    def refuse(self, cluster: str, reason: str, limit: str = "") -> str:
        """Count and log a roll-up that is not read; the reason as its operator is told it."""

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good, and its demand with it."""


class Sessions:
    """All open sessions of a shard."""

    def __init__(
        self,
        machines: NodeSource,
        nodes: Nodes,
        rollups: RollUpReceiver,
        clock: Clock,
        rng: Random,
        metrics: SessionMetrics,
        standing: Callable[[], TermAndEpoch] = TermAndEpoch,
        outbox_bound: int = DEFAULT_BOUND,
        moment_seconds: float = MOMENT_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
        carried: Callable[[], str] = str,
        is_given_away: Callable[[str], bool] = lambda machine_id: False,
    ) -> None:
        self.on_reclaim_ack: list[OnReclaimAck] = []
        self.on_open: list[OnSession] = []
        self.on_close: list[OnSession] = []
        """Called for a session that was replaced as well, before the new one opens."""
        self._nodes = nodes
        self._rollups = rollups
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._standing = standing
        self._bound = outbox_bound
        self._carried = carried
        """What a request is part of, as its answerer is told; empty for nothing."""
        self._open: dict[str, OperatorSession] = {}
        self._stopping = False
        self._turns = ReplayThrottle(pause=pause_seconds)
        self._updates = NodeUpdates(machines, nodes.node_name, self, moment_seconds, is_given_away)

    # -- who is there ----------------------------------------------------------------------------

    def connected(self, cluster: str) -> bool:
        """Whether a cluster can be asked something now."""
        return self._session(cluster) is not None

    def clusters(self) -> list[str]:
        return [cluster for cluster, session in self._open.items() if not session.ended]

    def knows_additions(self, cluster: str) -> bool:
        """Whether the cluster's operator states a version: it knows cancels and verdicts."""
        session = self._session(cluster)
        return session is not None and bool(session.software_version)

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good: its demand, and what it was still to be told."""
        self._rollups.forget(cluster)
        self._updates.forget(cluster)

    def stop(self) -> None:
        """This shard stops: streams that are cut from now on are cut by it."""
        self._stopping = True

    # -- one stream ------------------------------------------------------------------------------

    async def serve(self, stream: Stream) -> None:
        """Serve one stream to its end; SessionEnd says how it ends when that is not OK."""
        if stream.identity == NO_NAME:
            # Its frame is taken and not looked at: a status before it would not reach everybody.
            with contextlib.suppress(SessionEnd):
                await _first_frame(stream)
            self._refuse_nameless()
        try:
            hello = await _first_frame(stream)
        except SessionEnd as end:
            _log.warning(
                "operator message handling: no session is opened",
                extra={"identity": cut(stream.identity or ""), "error": end.text},
            )
            raise
        self._check_identity(stream.identity, hello.cluster_id)
        session = OperatorSession(stream, hello, self, self._clock, self._bound)
        self._install(session, hello)
        why: BaseException | None = None
        try:
            await session.run(self._updates.replay(session.cluster))
        except BaseException as error:
            why = error
            raise
        finally:
            self._remove(session, why)

    def _install(self, session: OperatorSession, hello: shard_pb2.Hello) -> None:
        cluster = session.cluster
        old = self._open.get(cluster)
        self._open[cluster] = session
        if old is not None:
            old.end(
                SessionEnd(
                    grpc.StatusCode.ABORTED,
                    f"a newer session of cluster {cluster!r} has taken over",
                )
            )
            self._updates.undelivered(cluster, old.unsent())
            self._metrics.session_event("replaced", len(self._open))
            _tell(self.on_close, cluster)
        self._metrics.session_event("installed", len(self._open))
        _log.info(
            "operator session opened",
            extra={
                "cluster": cluster,
                "protocol_version": cut(hello.protocol_version),
                "software_version": cut(hello.software_version),
            },
        )
        _tell(self.on_open, cluster)

    def _remove(self, session: OperatorSession, why: BaseException | None) -> None:
        cluster = session.cluster
        keys = {"cluster": cluster, **_ending(why, stopping=self._stopping)}
        if isinstance(why, asyncio.CancelledError) and not self._stopping:
            _log.warning(
                "operator session recv error", extra={"cluster": cluster, "error": keys["error"]}
            )
        if isinstance(why, SessionEnd) and why.code is not grpc.StatusCode.ABORTED:
            _log.warning("operator message handling: the session is ended", extra=keys)
        _log.info("operator session closed", extra=keys)
        if self._open.get(cluster) is session:
            del self._open[cluster]
            self._updates.undelivered(cluster, session.unsent())
            self._metrics.session_event("removed", len(self._open))
            _tell(self.on_close, cluster)

    def _refuse_nameless(self) -> NoReturn:
        """Refuse a certificate that names no caller, without a look at what it sends."""
        self._metrics.session_identity_rejected()
        _log.error("operator session identity rejected", extra={"cluster": "", "identity": "none"})
        raise SessionEnd(
            grpc.StatusCode.PERMISSION_DENIED,
            "the certificate names no caller: it needs exactly one URI "
            "bigfleet://cluster/<cluster id>",
        )

    def _check_identity(self, identity: str | None, cluster: str) -> None:
        expected = cluster_name(cluster)
        if identity is None or identity == expected:
            return
        self._metrics.session_identity_rejected()
        _log.error(
            "operator session identity rejected",
            extra={"cluster": cluster, "identity": cut(identity)},
        )
        raise SessionEnd(
            grpc.StatusCode.PERMISSION_DENIED,
            f"the certificate is of {shortened(identity)}; cluster {cluster!r} needs {expected!r}",
        )

    # -- asking and telling ----------------------------------------------------------------------

    def send(self, cluster: str, message: shard_pb2.ShardMessage, key: str = "") -> bool:
        """Queue a frame for a cluster; whether a session took it."""
        session = self._session(cluster)
        if session is None:
            return False
        if message.HasField("need_verdicts") and not session.software_version:
            return False
        return session.send(message, key)

    def feed(self, cluster: str, machine_id: str) -> None:
        """Tell a cluster of a machine when there is room, as it is then."""
        session = self._session(cluster)
        if session is not None:
            session.feed(machine_id)

    async def bootstrap(
        self, cluster: str, profile: Profile, machine: Machine, seconds: float
    ) -> Blob:
        """Data that makes the machine a node; NoSessionError, BlobError or TimeoutError."""
        session = self._session(cluster)
        if session is None:
            raise NoSessionError(f"cluster {cluster!r} has no session")
        request = shard_pb2.BootstrapRequest(
            request_id=self._carried() + self._new_id(),
            requirements=requirements_to_proto(profile.requirements),
            cluster_id=cluster,
            machine=bootstrap_machine(machine),
        )
        return await session.ask(request, seconds)

    def send_reclaim(self, cluster: str, instruction: Instruction) -> bool:
        """Ask a cluster to empty a node, or to stop doing so; whether a session took it."""
        if instruction.cancel and not self.knows_additions(cluster):
            return False
        frame = shard_pb2.ReclaimInstruction(
            instruction_id=instruction.id,
            nodes=[instruction.node],
            grace_period_seconds=instruction.grace_seconds,
            preemptor_priority=instruction.preemptor_priority,
            cancel=instruction.cancel,
            reason=shard_pb2.ReclaimReason.ValueType(instruction.reason),
        )
        return self.send(cluster, shard_pb2.ShardMessage(reclaim_instruction=frame))

    # -- what a session asks of those around it --------------------------------------------------

    def hello_ack(self) -> shard_pb2.ShardMessage:
        """The answer to a Hello."""
        standing = self._standing()
        ack = shard_pb2.Acknowledgement(
            echo=HELLO,
            coordinator_term=standing.coordinator_term,
            shard_epoch=standing.epoch,
            max_rows=self._rollups.max_rows,
        )
        return shard_pb2.ShardMessage(ack=ack)

    async def turn(self) -> None:
        """Returns when something that is in no hurry may be done, in whatever session."""
        await self._turns.next()

    def frame_now(self, cluster: str, machine_id: str) -> shard_pb2.ShardMessage | None:
        """What a cluster is told of a machine at this moment, if anything."""
        return self._updates.frame_now(cluster, machine_id)

    async def take_rollup(
        self, session: OperatorSession, rollup: capacity_pb2.ClusterCapacityNeeds
    ) -> shard_pb2.Acknowledgement | None:
        """Take a roll-up and answer it."""
        ack = await self._rollups.take(session.cluster, rollup, lambda: not session.ended)
        if ack is not None:
            standing = self._standing()
            ack.coordinator_term, ack.shard_epoch = standing.coordinator_term, standing.epoch
        return ack

    def refuse_rollup(
        self, cluster: str, reason: str, timestamp: int = 0, limit: str = ""
    ) -> shard_pb2.Acknowledgement:
        """Count and log a roll-up that is not looked at."""
        standing = self._standing()
        return shard_pb2.Acknowledgement(
            echo=REJECTED,
            reason=self._rollups.refuse(cluster, reason, limit),
            rollup_timestamp_unix_nanos=timestamp,
            coordinator_term=standing.coordinator_term,
            shard_epoch=standing.epoch,
        )

    def reclaim_acked(self, cluster: str, ack: shard_pb2.ReclaimAck) -> None:
        """An operator says how far a reclaim has come; unknown ids are for others to pass over."""
        second = ack.nodes_drained > 0 or len(ack.nodes_left) > 0
        left = tuple(ack.nodes_left)
        for listener in self.on_reclaim_ack:
            listener(cluster, ack.instruction_id, second, left)

    def nodes_observed(self, session: OperatorSession, seen: shard_pb2.NodeObservations) -> None:
        """Take an observation; nodes held cordoned without an instruction are let go, and machines
        that are not the cluster's are taken back.

        After a restart it is not known why a node was to be emptied, nor whom a machine left
        while no shard ran. Both are said once per session.
        """
        found = self._nodes.set_nodes(session.cluster, nodes_seen(seen), full=seen.full)
        self._uncordon(session, found.cordoned, full=seen.full)
        known = session.taken_back
        withdrawn = self._updates.take_back(
            session.cluster, [machine for machine in found.strange if machine not in known]
        )
        session.taken_back = (known & set(found.strange) if seen.full else known) | set(withdrawn)

    def _uncordon(self, session: OperatorSession, cordoned: list[str], *, full: bool) -> None:
        for machine in cordoned:
            if machine not in session.uncordoned:
                node = self._nodes.node_name(machine) or machine
                self.send_reclaim(
                    session.cluster, Instruction(self._new_id(), node, 0, cancel=True)
                )
        session.uncordoned = set(cordoned) | (set() if full else session.uncordoned)

    def _session(self, cluster: str) -> OperatorSession | None:
        session = self._open.get(cluster)
        return None if session is None or session.ended else session

    def _new_id(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"


async def _first_frame(stream: Stream) -> shard_pb2.Hello:
    """The Hello a session opens with."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            message = await stream.receive()
    except TimeoutError:
        raise _no_hello(f"nothing came within {HELLO_SECONDS:g} s") from None
    except SessionEnd:
        raise
    except Exception as error:
        raise _no_hello(f"the stream failed before it: {error}") from error
    if message is None:
        raise _no_hello("the stream was closed before it")
    if isinstance(message, OversizedRollUp):
        raise _no_hello("it is a roll-up")
    if message.WhichOneof("payload") != "hello":
        raise _no_hello(f"it is {message.WhichOneof('payload') or 'empty'}")
    try:
        check_id(message.hello.cluster_id, "its cluster_id")
    except IdentifierError as error:
        raise _no_hello(str(error)) from None
    return message.hello


def _no_hello(found: str) -> SessionEnd:
    return SessionEnd(
        grpc.StatusCode.INVALID_ARGUMENT,
        f"the first frame must be a Hello that names a cluster: {found}",
    )


def _ending(why: BaseException | None, *, stopping: bool) -> dict[str, str]:
    """How a session ended, for the log. Who is cancelled was cut off, by whichever end."""
    if why is None:
        return {"code": "OK", "error": ""}
    if isinstance(why, asyncio.CancelledError):
        error = "this shard stops" if stopping else "the connection broke"
        return {"code": "CANCELLED", "error": error}
    if isinstance(why, SessionEnd):
        return {"code": why.code.name, "error": why.text}
    return {"code": type(why).__name__, "error": str(why)}


def _tell(listeners: list[OnSession], cluster: str) -> None:
    for listener in listeners:
        listener(cluster)
