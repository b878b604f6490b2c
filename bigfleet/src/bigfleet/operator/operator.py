"""The operator: its parts put together, and the cluster behind every session.

Watches feed the roll-up and the book of nodes whether or not this replica leads, so that one that
takes over is ready at once; only the one that leads talks to the shard and writes. Frames of the
shard are handed to the part they are for, and none of them waits for another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bigfleet.kube import BadObject, Change, ChangeKind, EventRecorder, KubeClient, ObjectRef
from bigfleet.model import Resources
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.process import Clock
from bigfleet.observe.tracing import Spans
from bigfleet.operator.acknowledge.verdicts import RequestVerdicts
from bigfleet.operator.acknowledge.writer import Acknowledger
from bigfleet.operator.bootstrap.responder import Bootstrap
from bigfleet.operator.bootstrap.template import BootstrapTemplate
from bigfleet.operator.bootstrap.tokens import Tokens
from bigfleet.operator.demand.requests import BAD_OPERATOR, CapacityRequest
from bigfleet.operator.demand.rollup import Built, RollUpBuilder
from bigfleet.operator.drain.drains import NodeDrains
from bigfleet.operator.drain.notices import ReclaimNotices
from bigfleet.operator.errors import UnreadableRequestError
from bigfleet.operator.machines.available import Available
from bigfleet.operator.machines.node_state import Phase
from bigfleet.operator.machines.writer import FORGET_SECONDS, UpcomingNodeWriter
from bigfleet.operator.nodes.book import NodeBook, ready_since
from bigfleet.operator.nodes.objects import DaemonSet, node_overhead
from bigfleet.operator.ports import Dial
from bigfleet.operator.session.dialer import Connection
from bigfleet.operator.session.session import PROTOCOL, SessionIntervals
from bigfleet.operator.traces import OperatorTraces
from bigfleet_api.v1alpha1 import shard_pb2 as pb

NODE_LATE_SECONDS: Final = 60.0
"""When a machine that is Ready for the shard should have a Ready node; only counted in a gauge. How
long it still serves its need is the shard's `Policy.readiness_deadline`.
"""
_COUNT_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this operator is."""

    cluster_id: str
    version: str = "0"


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """What its owner may set."""

    rhythm: SessionIntervals = field(default_factory=SessionIntervals)
    ack_concurrency: int = 64
    write_concurrency: int = 16
    eviction_concurrency: int = 32
    default_arch: str = ""
    """Architecture of new machines for rows that name none; empty for any."""
    default_os: str = ""


@dataclass(frozen=True)
class OperatorEnvironment:
    """What an operator is given. `urgent` is a client whose calls wait behind nothing else."""

    client: KubeClient
    urgent: KubeClient
    dial: Dial
    clock: Clock
    metrics: OperatorMetrics
    events: EventRecorder
    template: BootstrapTemplate | None
    rng: Random = field(default_factory=Random)
    unguessable: Random = field(default_factory=Random)
    spans: Spans | None = None
    """Where traces go; None for nowhere."""


class ClusterOperator:
    """One cluster's operator."""

    def __init__(
        self, identity: Identity, world: OperatorEnvironment, config: OperatorConfig | None = None
    ) -> None:
        config = config or OperatorConfig()
        self._identity, self._world = identity, world
        client, clock, metrics, rng = world.client, world.clock, world.metrics, world.rng
        self.traces = OperatorTraces(world.spans, clock, identity.cluster_id)
        self.rollups = RollUpBuilder(config.default_arch, config.default_os)
        self.machines = UpcomingNodeWriter(client, clock, metrics, rng, config.write_concurrency)
        self.book = NodeBook(self.machines)
        self.available = Available(client, self._demanded, rng)
        self.acknowledger = Acknowledger(client, clock, metrics, rng, config.ack_concurrency)
        self.verdicts = RequestVerdicts(client, clock, self.rollups)
        self.connection = Connection(self, self, world.dial, rng, config.rhythm)
        self.drains = NodeDrains(
            client,
            self.book,
            clock,
            metrics,
            rng,
            self.connection.post,
            ReclaimNotices(world.events),
            evictions=config.eviction_concurrency,
        )
        tokens = Tokens(world.urgent, clock, world.unguessable)
        self.bootstrap = Bootstrap(world.template, tokens.mint, metrics)
        self._daemon_sets: dict[str, DaemonSet] = {}
        self._overhead: Resources = {}
        self._last_timestamp = 0
        self._build_seconds = 0.0
        self._ready_at: dict[str, float] = {}
        self._dispatching: set[asyncio.Task[None]] = set()
        self._opened_at: float | None = None
        self.rollups.on_change.append(self.connection.demand_changed)
        self.rollups.on_change.append(self.traces.demand_changed)
        self.machines.on_change.append(self._machine_changed)
        self.book.on_change.append(self._node_changed)

    # -- what watches bring ----------------------------------------------------------------------

    def request_seen(self, change: Change[CapacityRequest]) -> None:
        """A CapacityRequest came, changed or went."""
        found = change.new or change.old
        if found is None:
            return
        meta = found.metadata
        if change.kind is ChangeKind.DELETED:
            self.rollups.remove((meta.namespace, meta.name))
            return
        try:
            self.rollups.put(found)
        except UnreadableRequestError as error:
            self._world.metrics.request_skipped(error.reason)
            self._warn(meta.namespace, meta.name, meta.uid, "NotCarried", f"Left out: {error}.")

    def unreadable(self, bad: BadObject) -> None:
        """A CapacityRequest that is not what its kind should be."""
        meta = bad.metadata
        self.rollups.remove((meta.namespace, meta.name))
        self._world.metrics.request_skipped(BAD_OPERATOR)
        self._warn(meta.namespace, meta.name, meta.uid, "NotCarried", f"Left out: {bad.problem}.")

    def daemon_set_seen(self, change: Change[DaemonSet]) -> None:
        """A DaemonSet came, changed or went."""
        if change.new is None:
            self._daemon_sets.pop(change.key, None)
        else:
            self._daemon_sets[change.key] = change.new
        overhead = node_overhead(self._daemon_sets.values())
        if overhead != self._overhead:
            self._overhead = overhead
            self.connection.demand_changed()

    # -- the life of one that leads --------------------------------------------------------------

    async def lead(self) -> None:
        """Act for this cluster until cancelled."""
        self.rollups.begin()
        self.drains.resume()
        try:
            async with asyncio.TaskGroup() as group:
                for work in self._works():
                    group.create_task(work)
        finally:
            for task in [*self._dispatching]:
                task.cancel()
            await self.drains.stop()
            # The next leader counts these.
            self._world.metrics.requests(0, 0)
            self._world.metrics.phantom_nodes(0)

    def _works(self) -> tuple[Coroutine[None, None, None], ...]:
        return (
            self.machines.run(),
            self.available.run(),
            self.acknowledger.run(),
            self.verdicts.run(),
            self._world.events.run(),
            self.connection.run(),
            self._look(),
        )

    async def _look(self) -> None:
        """What is counted now and then, and machines that the shard no longer mentions."""
        forgotten = False
        while True:
            now = self._world.clock.monotonic()
            metrics, acknowledged = self._world.metrics, self.rollups.acknowledged
            metrics.requests(len(self.rollups) - acknowledged, acknowledged)
            metrics.phantom_nodes(self.book.count_late_nodes(self._is_late))
            lasted = 0.0 if self._opened_at is None else now - self._opened_at
            if lasted < FORGET_SECONDS:
                forgotten = False
            elif not forgotten:
                forgotten = True
                self.machines.forget_silent(lambda m: self.book.node_of(m) is not None)
            await asyncio.sleep(_COUNT_SECONDS)

    # -- the cluster behind a session (SessionDelegate) -------------------------------------------

    def hello(self) -> pb.Hello:
        """Who calls."""
        return pb.Hello(
            cluster_id=self._identity.cluster_id,
            protocol_version=PROTOCOL,
            software_version=self._identity.version,
        )

    @property
    def has_comparisons(self) -> bool:
        """Whether any row uses Gt or Lt."""
        return self.rollups.has_comparisons

    def roll_up(self, *, comparisons: bool) -> Built:
        """All demand, as it is now."""
        began = self._world.clock.monotonic()
        self._last_timestamp = max(self._world.clock.now(), self._last_timestamp + 1)
        built = self.rollups.build(
            self._identity.cluster_id,
            self._last_timestamp,
            self._overhead,
            comparisons=comparisons,
        )
        self._build_seconds = self._world.clock.monotonic() - began
        return built

    def rolled_up(self, built: Built, seconds: float) -> None:
        """A roll-up was handed over. Its list is kept up to date, so reading it takes no time."""
        phases = {"list": 0.0, "build": self._build_seconds, "enqueue": seconds}
        self._world.metrics.rolled_up(phases, built.rows, len(built.frame))
        self.traces.rolled_up(built)

    def taken(self, timestamp: int) -> None:
        """The shard took this roll-up."""
        self._world.metrics.rollup_taken()
        self.traces.taken(timestamp)
        self.acknowledger.put(self.rollups.taken(timestamp))

    def rejected(self, reason: str) -> None:
        """The shard refused a roll-up; it keeps what it knew."""
        _log.error("roll-up refused by the shard", extra={"error": reason})

    def not_expressible(self) -> None:
        """This shard cannot be told of rows with Gt or Lt."""
        words = "Left out: the shard of this cluster does not know the operators Gt and Lt."
        entries = list(self.rollups.comparing())
        for entry in entries:
            self._warn(*entry.key, entry.uid, "NotExpressible", words)
        self.verdicts.not_expressible(entries)

    def hear(self, message: pb.ShardMessage) -> None:
        """A frame of the shard."""
        match message.WhichOneof("payload"):
            case "node_state_update":
                self._node_state(message.node_state_update)
            case "bootstrap_request":
                request = message.bootstrap_request
                answering = self.bootstrap.answer(request, self.connection.post)
                self._dispatch(self.traces.bootstrap(request, answering))
            case "reclaim_instruction":
                self.drains.instruct(message.reclaim_instruction)
            case "available_capacity":
                self.available.hear(message.available_capacity)
            case "need_verdicts":
                self.verdicts.hear(message.need_verdicts)
            case _:
                _log.warning("a frame of the shard without a payload is passed over")

    def observations(self, *, full: bool) -> pb.NodeObservations | None:
        """What the nodes look like."""
        return self.book.observations(full=full)

    def dropped(self) -> None:
        """An answer was lost to a full outbox."""
        self._world.metrics.answer_dropped()

    def greeted(self) -> None:
        """The session is open."""
        self._opened_at = self._world.clock.monotonic()
        self._world.metrics.session(connected=True)
        self.traces.demand_changed()
        self.machines.session_opened()
        self.verdicts.session_opened()
        self.drains.session_opened()
        _log.info("session opened", extra={"cluster": self._identity.cluster_id})

    def closed(self) -> None:
        """The session ended."""
        self._opened_at = None
        self._world.metrics.session(connected=False)
        self.drains.session_closed()

    def reconnecting(self) -> None:
        """Another attempt is made."""
        self._world.metrics.session_again()

    # -- inside ----------------------------------------------------------------------------------

    def _node_state(self, update: pb.NodeStateUpdate) -> None:
        self.machines.hear(update)
        known = self.machines.get(update.machine_id)
        if known is not None and known.phase is Phase.DRAINING:
            node = self.book.node_of(known)
            if node is not None:
                self.drains.draining(node.metadata.name)

    def _machine_changed(self, machine_id: str) -> None:
        self.book.machine_changed(machine_id)
        known = self.machines.get(machine_id)
        if known is not None and known.phase is Phase.READY:
            self._ready_at.setdefault(machine_id, self._world.clock.monotonic())
        else:
            self._ready_at.pop(machine_id, None)

    def _node_changed(self, name: str) -> None:
        node = self.book.get(name)
        machine_id = "" if node is None else self.book.machine_of(node)
        if machine_id:
            self.machines.named(machine_id, name)
            if node is not None and ready_since(node):
                self.traces.node_ready(machine_id, name)
        self.connection.nodes_changed()

    def _is_late(self, machine_id: str) -> bool:
        """Whether a machine is called Ready for so long that its node should be."""
        now = self._world.clock.monotonic()
        return now - self._ready_at.get(machine_id, now) > NODE_LATE_SECONDS

    def _demanded(self) -> set[str]:
        return self.rollups.fingerprints()

    def _dispatch(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._dispatching.add(task)
        task.add_done_callback(self._dispatched)
        self._world.metrics.dispatching(len(self._dispatching))

    def _dispatched(self, task: asyncio.Task[None]) -> None:
        self._dispatching.discard(task)
        self._world.metrics.dispatching(len(self._dispatching))
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a frame of the shard could not be handled", exc_info=error)

    def _warn(self, namespace: str, name: str, uid: str, reason: str, words: str) -> None:
        ref = ObjectRef("bigfleet.lucy.sh/v1alpha1", "CapacityRequest", name, namespace, uid)
        self._world.events.warn(ref, reason, words)
