"""One simulated cluster: its demand, its nodes and pods, and how it answers its shard.

No transport here: frames of the shard go in through `hear`, frames for it come out through the
`send` that a session attaches, and go nowhere without one, as with a real operator that is not
connected. When roll-ups are sent, and reconnecting, is the session's and the operator's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.agenda import Agenda
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.demand_changes import Change, apply
from bigfleet_lab.simcluster.drains import Drains
from bigfleet_lab.simcluster.faults import Faults
from bigfleet_lab.simcluster.nodes import Node, Nodes
from bigfleet_lab.simcluster.ports import Clock
from bigfleet_lab.simcluster.rollup import RollUps, RowKey
from bigfleet_lab.simcluster.scheduler import PodPlacement
from bigfleet_lab.simcluster.stats import Stats
from bigfleet_lab.simcluster.workload import Workload

Send = Callable[[pb.OperatorMessage], None]
_PLACE_AFTER = 0.05
"""Seconds in which changes gather before pods are placed."""


class SimCluster:
    """A cluster. Use it inside the event loop: it sets timers."""

    def __init__(
        self,
        cluster_id: str,
        workload: Workload,
        clock: Clock,
        rng: Random,
        behaviour: Behaviour | None = None,
        stats: Stats | None = None,
    ) -> None:
        self.id = cluster_id
        self.workload = workload
        self.behaviour = behaviour or Behaviour()
        self.stats = stats or Stats()
        self.faults = Faults()
        self.clock, self.rng = clock, rng
        self.agenda = Agenda()
        self.rollups = RollUps(workload, self.behaviour.overhead)
        self.nodes = Nodes(self.behaviour.overhead)
        self.placing = PodPlacement(workload, self.nodes, rng)
        self.drains = Drains(
            self.nodes, self.behaviour, self.agenda, rng,
            empty=self._empty, changed=self._observe, answer=self._send,
        )  # fmt: skip
        self.verdicts: dict[RowKey, pb.NeedVerdict] = {}
        self.hints: dict[str, pb.AvailableCapacityUpdate] = {}
        self.on_demand_change: list[Callable[[], None]] = []
        self.on_node_change: list[Callable[[], None]] = []
        self._sender: Send | None = None
        self._session = 0
        self._placing_due = False
        self._unobserved: set[str] = set()
        self._last_timestamp = 0
        workload.on_change.append(self._demand_changed)

    # -- the session's side ----------------------------------------------------------------------

    def attach(self, send: Send) -> None:
        """A session is open: answers go there."""
        self._sender = send
        self._session += 1
        self.drains.session_opened()
        opened = self._session
        self.agenda.after(
            self.behaviour.confirm_node_seconds, lambda: self._forget_unconfirmed(opened)
        )

    def detach(self) -> None:
        """The session is over; what goes on here goes on."""
        self._sender = None
        self.hints.clear()

    def stop(self) -> None:
        """The end: no timer of this cluster fires any more."""
        self.detach()
        self.agenda.clear()

    def timestamp(self) -> int:
        """For a roll-up: now, and later than the one before."""
        self._last_timestamp = max(self.clock.now(), self._last_timestamp + 1)
        return self._last_timestamp

    def hear(self, message: pb.ShardMessage) -> None:
        """A frame of the shard, acknowledgements apart."""
        match message.WhichOneof("payload"):
            case "bootstrap_request":
                self._bootstrap(message.bootstrap_request)
            case "reclaim_instruction":
                instruction = message.reclaim_instruction
                self.stats.reclaim_cancels += instruction.cancel
                self.stats.reclaims += not instruction.cancel
                self.drains.instruct(instruction)
                self._place_soon()
            case "node_state_update":
                self.stats.node_updates += 1
                self._node(message.node_state_update)
            case "available_capacity":
                self.stats.capacity_hints += 1
                hint = message.available_capacity
                self.hints[hint.supersedes_key] = hint
            case "need_verdicts":
                for verdict in message.need_verdicts.verdicts:
                    self.stats.verdicts += 1
                    key = (verdict.profile_fingerprint, verdict.group, verdict.size_class)
                    self.verdicts[key] = verdict
            case _:
                # A frame of a later release.
                pass

    def observations(self, *, full: bool) -> pb.NodeObservations | None:
        """What is seen of the nodes: all, or what changed since the last; None for no news."""
        seen = [
            self._observation(node)
            for node in self.nodes
            if node.exists and (full or node.machine_id in self._unobserved)
        ]
        self._unobserved.clear()
        return pb.NodeObservations(nodes=seen, full=full) if seen or full else None

    # -- what can be done to it ------------------------------------------------------------------

    def change(self, change: Change, share: float) -> None:
        """Let its demand move."""
        apply(self.workload, change, share, self.rng)

    def set_behaviour(self, **changes: object) -> None:
        """Other habits from now on."""
        self.behaviour = replace(self.behaviour, **changes)  # type: ignore[arg-type]
        self.drains.behaviour = self.behaviour

    def delete_pods(self, count: int) -> None:
        """So many running pods are deleted and made again by their controllers: demand stays."""
        for node in self.placing.delete(count):
            self._observe(node)
        self._place_soon()

    def lose_node(self, machine_id: str) -> None:
        """The node stops being Ready, for good: its kubelet died."""
        node = self.nodes.get(machine_id)
        if node is not None and node.ready:
            node.ready_since_ns = 0
            self._empty(node)
            self._observe(node)

    # -- inside ----------------------------------------------------------------------------------

    def _send(self, message: pb.OperatorMessage) -> None:
        if self._sender is not None:
            self._sender(message)

    def _bootstrap(self, request: pb.BootstrapRequest) -> None:
        self.stats.bootstraps_asked += 1
        refused = self.rng.random() < self.behaviour.bootstrap_error_rate
        answer = pb.BootstrapBlobResponse(request_id=request.request_id)
        if refused:
            answer.error = "simulated: the bootstrap template cannot be rendered"
        else:
            answer.user_data = f"join {self.id} {request.machine.machine_id}".encode()
            answer.ttl_seconds = self.behaviour.bootstrap_ttl_seconds
        sender = self._sender

        def respond() -> None:
            # An answer belongs to the session that asked.
            if sender is not None and self._sender is sender:
                self.stats.bootstraps_refused += refused
                self.stats.bootstraps_answered += not refused
                sender(pb.OperatorMessage(bootstrap_response=answer))

        self.agenda.after(self.behaviour.bootstrap_seconds.draw(self.rng), respond)

    def _node(self, update: pb.NodeStateUpdate) -> None:
        heard = self.nodes.hear(update, self._session)
        node = heard.node
        if heard.left:
            self._gone(node)
        elif heard.joins and self.rng.random() >= self.behaviour.never_ready_rate:
            delay = self.behaviour.join_seconds.draw(self.rng)
            self.agenda.after(delay, lambda: self._joined(node))
        if heard.joins:
            self._observe(node)

    def _joined(self, node: Node) -> None:
        if self.nodes.get(node.machine_id) is node and node.exists and not node.ready:
            node.ready_since_ns = self.clock.now()
            self._observe(node)
            self._place_soon()

    def _gone(self, node: Node) -> None:
        self._unobserved.discard(node.machine_id)
        self.drains.left_cluster(node)
        self._empty(node)

    def _empty(self, node: Node) -> None:
        if self.placing.evict(node):
            self._observe(node)
            self._place_soon()

    def _forget_unconfirmed(self, session: int) -> None:
        # Only while that session lasts: a newer one starts its own count.
        if self._sender is None or session != self._session:
            return
        for node in [node for node in self.nodes if node.session < session]:
            self.nodes.forget(node.machine_id)
            self._gone(node)

    def _demand_changed(self, name: str) -> None:
        for node in self.placing.trim(name):
            self._observe(node)
        self._place_soon()
        for tell in self.on_demand_change:
            tell()

    def _place_soon(self) -> None:
        if not self._placing_due and len(self.nodes):
            self._placing_due = True
            self.agenda.after(_PLACE_AFTER, self._place)

    def _place(self) -> None:
        self._placing_due = False
        for node in self.placing.place():
            self._observe(node)

    def _observe(self, node: Node) -> None:
        if node.exists:
            self._unobserved.add(node.machine_id)
            for tell in self.on_node_change:
                tell()

    def _observation(self, node: Node) -> pb.NodeObservation:
        return pb.NodeObservation(
            node_name=node.name,
            provider_id=node.provider_id,
            machine_id=node.machine_id,
            ready=node.ready,
            ready_since_unix_nanos=node.ready_since_ns,
            unschedulable=node.cordoned,
            pods=sum(node.pods.values()),
            do_not_disrupt=any(self.workload[name].do_not_disrupt for name in node.pods),
        )
