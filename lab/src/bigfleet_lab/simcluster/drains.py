"""Drains of one cluster: what the shard asked to be emptied, and how far that is.

    instruction -> cordon, first ack -> pods leave over time -> second ack: drained, or left

A second instruction for the same node takes the drain over; a cancel ends it and the node takes
pods again. A drain that outlives its session goes on, and is called off when the shard does not
name it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.agenda import Agenda
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.nodes import Node, Nodes

_DEFAULT_GRACE: Final = 30.0
Answer = Callable[[pb.OperatorMessage], None]


@dataclass(slots=True, eq=False)
class Drain:
    """One instruction under way."""

    id: str
    nodes: list[Node]
    waiting: set[str] = field(default_factory=set)
    """Machines whose pods have not left."""
    timers: list[int] = field(default_factory=list)
    confirmed: bool = True
    done: bool = False


class Drains:
    """All drains of a cluster. `empty` lets the pods of a node leave."""

    def __init__(
        self,
        nodes: Nodes,
        behaviour: Behaviour,
        agenda: Agenda,
        rng: Random,
        empty: Callable[[Node], None],
        changed: Callable[[Node], None],
        answer: Answer,
    ) -> None:
        self._nodes, self.behaviour, self._agenda, self._rng = nodes, behaviour, agenda, rng
        self._empty, self._changed, self._answer = empty, changed, answer
        self._drains: dict[str, Drain] = {}
        self.started = self.finished = self.left = self.cancelled = self.called_off = 0

    def __len__(self) -> int:
        return len(self._drains)

    def instruct(self, instruction: pb.ReclaimInstruction) -> None:
        """An instruction of the shard: to drain, or to stop draining."""
        if instruction.cancel:
            self._cancel(instruction)
            return
        known = self._drains.get(instruction.instruction_id)
        if known is not None:
            known.confirmed = True
            self._acknowledge(known)
            return
        found = (self._nodes.find(entry) for entry in instruction.nodes)
        nodes = [node for node in found if node is not None]
        for node in nodes:
            self._take_over(node)
        drain = Drain(instruction.instruction_id, nodes, {node.machine_id for node in nodes})
        self._drains[drain.id] = drain
        self.started += 1
        for node in nodes:
            node.cordoned = True
            self._changed(node)
        self._acknowledge(drain)
        grace = float(instruction.grace_period_seconds)
        self._begin(drain, grace if grace > 0 else _DEFAULT_GRACE)

    def left_cluster(self, node: Node) -> None:
        """A node is gone, so there is nothing left to drain on it."""
        for drain in list(self._drains.values()):
            if node in drain.nodes:
                drain.waiting.discard(node.machine_id)
                drain.nodes.remove(node)
                if not drain.nodes:
                    self._drop(drain)

    def session_opened(self) -> None:
        """What was going on has to be confirmed by the shard, or is called off."""
        for drain in self._drains.values():
            drain.confirmed = False
        if self._drains:
            self._agenda.after(self.behaviour.confirm_drain_seconds, self._call_off)

    def _begin(self, drain: Drain, grace: float) -> None:
        for node in drain.nodes:
            stuck = self._rng.random() < self.behaviour.stuck_drain_rate
            seconds = self.behaviour.evict_seconds.draw(self._rng) if node.pods else 0.0
            if not stuck and seconds < grace:
                emptied = partial(self._emptied, drain, node)
                drain.timers.append(self._agenda.after(seconds, emptied))
        drain.timers.append(self._agenda.after(grace, partial(self._finish, drain)))

    def _emptied(self, drain: Drain, node: Node) -> None:
        self._empty(node)
        drain.waiting.discard(node.machine_id)
        if not drain.waiting:
            self._finish(drain)

    def _finish(self, drain: Drain) -> None:
        if drain.done:
            return
        drain.done = True
        self._stop(drain)
        left = [node.name for node in drain.nodes if node.machine_id in drain.waiting]
        self.finished += 1
        self.left += len(left)
        self._answer(
            pb.OperatorMessage(
                reclaim_ack=pb.ReclaimAck(
                    instruction_id=drain.id,
                    nodes_started=len(drain.nodes),
                    nodes_drained=len(drain.nodes) - len(left),
                    nodes_left=left,
                )
            )
        )
        if not drain.nodes:
            self._drop(drain)

    def _acknowledge(self, drain: Drain) -> None:
        ack = pb.ReclaimAck(instruction_id=drain.id, nodes_started=len(drain.nodes))
        self._answer(pb.OperatorMessage(reclaim_ack=ack))

    def _cancel(self, instruction: pb.ReclaimInstruction) -> None:
        drain = self._drains.get(instruction.instruction_id)
        if drain is not None:
            self._release(drain)
            self.cancelled += 1
        for entry in instruction.nodes:
            # Also where the drain is not known here: a node must not stay cordoned for no need.
            node = self._nodes.find(entry)
            if node is not None and node.cordoned:
                self._take_over(node)
                self._uncordon(node)

    def _call_off(self) -> None:
        for drain in [drain for drain in self._drains.values() if not drain.confirmed]:
            self._release(drain)
            self.called_off += 1

    def _release(self, drain: Drain) -> None:
        self._drop(drain)
        for node in drain.nodes:
            self._uncordon(node)

    def _uncordon(self, node: Node) -> None:
        node.cordoned = False
        self._changed(node)

    def _take_over(self, node: Node) -> None:
        for drain in list(self._drains.values()):
            if node in drain.nodes:
                drain.nodes.remove(node)
                drain.waiting.discard(node.machine_id)
                if not drain.nodes:
                    self._drop(drain)

    def _stop(self, drain: Drain) -> None:
        for timer in drain.timers:
            self._agenda.cancel(timer)
        drain.timers.clear()

    def _drop(self, drain: Drain) -> None:
        self._stop(drain)
        self._drains.pop(drain.id, None)
