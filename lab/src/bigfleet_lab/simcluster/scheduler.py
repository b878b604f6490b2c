"""Pods on nodes: the fullest node that fits first, as a scheduler set to most-allocated does.

Pods are counts per object and node. A gang stays in the domain it began in; spread is kept within
its skew. A pod whose node goes waits again, because its controller makes it again; so what waits is
always what exists and does not run.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from bigfleet.model import LABEL_CAPACITY_TYPE, Requirement, Spread, SpreadMode
from bigfleet_lab.simcluster.nodes import Node, Nodes
from bigfleet_lab.simcluster.workload import Workload, WorkObject


class PodPlacement:
    """Which pods run where."""

    def __init__(self, workload: Workload, nodes: Nodes, rng: Random) -> None:
        self._workload = workload
        self._nodes = nodes
        self._rng = rng
        self._running: dict[str, int] = {}
        self._running_pods = 0

    def running(self, name: str) -> int:
        """Pods of an object that run."""
        return self._running.get(name, 0)

    def waiting(self, name: str) -> int:
        """Pods of an object that exist and do not run."""
        return self._workload.replicas(name) - self.running(name)

    def waiting_pods(self) -> int:
        """All that wait."""
        return self._workload.pods() - self._running_pods

    def running_pods(self) -> int:
        """All that run."""
        return self._running_pods

    def place(self) -> set[Node]:
        """Let run what can run, most important first; the nodes that got pods."""
        ready = [node for node in self._nodes if node.schedulable]
        touched: set[Node] = set()
        if not ready:
            return touched
        for what in sorted(self._workload, key=lambda one: -one.profile.priority):
            if self.waiting(what.name) > 0:
                touched |= self._place(what, ready)
        return touched

    def trim(self, name: str) -> set[Node]:
        """Stop pods that no longer exist, on cordoned nodes first; the nodes that lost some."""
        surplus = self.running(name) - self._workload.replicas(name)
        touched: set[Node] = set()
        if surplus <= 0:
            return touched
        holders = [node for node in self._nodes if node.pods.get(name)]
        self._rng.shuffle(holders)
        for node in sorted(holders, key=lambda one: not one.cordoned):
            count = min(surplus, node.pods[name])
            self._put(node, name, -count)
            touched.add(node)
            surplus -= count
            if not surplus:
                break
        return touched

    def delete(self, count: int) -> set[Node]:
        """Pods that run are deleted, by chance; their controllers make them again, so they wait."""
        touched: set[Node] = set()
        holders = [node for node in self._nodes if node.pods]
        for _ in range(count):
            if not holders:
                break
            node = self._rng.choice(holders)
            self._put(node, self._rng.choice(list(node.pods)), -1)
            touched.add(node)
            if not node.pods:
                holders.remove(node)
        return touched

    def evict(self, node: Node) -> int:
        """Everything leaves a node; how many pods did."""
        pods = dict(node.pods)
        for name, count in pods.items():
            self._put(node, name, -count)
        return sum(pods.values())

    def _place(self, what: WorkObject, ready: list[Node]) -> set[Node]:
        fitting = [node for node in ready if _matches(what, node) and _units(what, node)]
        together = what.together
        if together is not None:
            fitting = self._one_domain(what, together, fitting)
        spread = [s for s in what.profile.spread if s.when is SpreadMode.DO_NOT_SCHEDULE]
        # Filling the fullest node makes it fuller still: one order serves all pods of an object.
        fitting.sort(key=lambda node: (-_fullness(node), node.machine_id))
        if spread and together is None:
            return self._place_evenly(what, spread[0], fitting, ready)
        touched: set[Node] = set()
        for node in fitting:
            count = min(self.waiting(what.name), _units(what, node))
            if count:
                self._put(node, what.name, count)
                touched.add(node)
        return touched

    def _one_domain(
        self, what: WorkObject, together: Requirement, fitting: list[Node]
    ) -> list[Node]:
        key = together.key
        begun = {node.labels.get(key) for node in self._nodes if node.pods.get(what.name)}
        if begun:
            return [node for node in fitting if node.labels.get(key) in begun]
        room: dict[str, int] = {}
        for node in fitting:
            domain = node.labels[key]
            room[domain] = room.get(domain, 0) + _units(what, node)
        best = max(sorted(room), key=room.__getitem__, default=None)
        return [node for node in fitting if node.labels[key] == best]

    def _place_evenly(
        self, what: WorkObject, spread: Spread, fitting: list[Node], ready: Iterable[Node]
    ) -> set[Node]:
        key, touched = spread.key, set[Node]()
        counts = {node.labels[key]: 0 for node in ready if key in node.labels}
        for node in self._nodes:
            domain = node.labels.get(key)
            if domain in counts:
                counts[domain] += node.pods.get(what.name, 0)
        while self.waiting(what.name) > 0:
            lowest = min(counts.values(), default=0)
            open_to = (
                node
                for node in fitting
                if key in node.labels
                and counts[node.labels[key]] - lowest < spread.max_skew
                and _units(what, node)
            )
            chosen = next(open_to, None)
            if chosen is None:
                break
            self._put(chosen, what.name, 1)
            counts[chosen.labels[key]] += 1
            touched.add(chosen)
        return touched

    def _put(self, node: Node, name: str, count: int) -> None:
        request = self._workload[name].request
        left = node.pods.get(name, 0) + count
        if left:
            node.pods[name] = left
        else:
            node.pods.pop(name, None)
        self._running_pods += count
        self._running[name] = self.running(name) + count
        if not self._running[name]:
            del self._running[name]
        for resource, amount in request.items():
            node.used[resource] = node.used.get(resource, 0) + amount * count


def _matches(what: WorkObject, node: Node) -> bool:
    return all(
        requirement.matches(node.labels)
        # How a machine is paid for is not a label of the frames; the shard has seen to it.
        or (requirement.key == LABEL_CAPACITY_TYPE and requirement.key not in node.labels)
        for requirement in what.profile.requirements
    )


def _units(what: WorkObject, node: Node) -> int:
    """How many more pods of an object fit on a node."""
    return min(
        (
            (node.room.get(name, 0) - node.used.get(name, 0)) // amount
            for name, amount in what.request.items()
            if amount
        ),
        default=0,
    )


def _fullness(node: Node) -> float:
    shares = [node.used.get(name, 0) / room for name, room in node.room.items() if room]
    return sum(shares) / len(shares) if shares else 0.0
