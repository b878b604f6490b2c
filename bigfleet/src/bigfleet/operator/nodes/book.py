"""The nodes of the cluster, the Pods on each of them, and which machine a node is.

Little is kept of a Pod: where it is, and whether it would have to be evicted. A node is a machine's
when it says so by its label, or when the machine's frames name it, or its host; a name or host that
two machines claim goes to the one that is still a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol

from bigfleet.kube import Change
from bigfleet.operator.machines.node_state import MACHINE_ID, MachineNodeState
from bigfleet.operator.nodes.objects import Node, Pod
from bigfleet_api.v1alpha1 import shard_pb2 as pb

DO_NOT_DISRUPT: Final = "bigfleet.lucy.sh/do-not-disrupt"
_NS: Final = 1_000_000_000


class MachineDirectory(Protocol):
    """The machines of this cluster."""

    def get(self, machine_id: str) -> MachineNodeState | None:
        """One of them."""

    def all(self) -> list[MachineNodeState]:
        """Every one."""


class PodOnNode:
    """One Pod that has a node."""

    __slots__ = ("evictable", "leaving", "name", "namespace", "node", "uid", "undisturbed")

    def __init__(self, pod: Pod) -> None:
        meta = pod.metadata
        self.namespace, self.name, self.uid = meta.namespace, meta.name, meta.uid
        self.node = pod.spec.node_name
        self.evictable = not pod.stays_with_node
        self.leaving = meta.deletion_timestamp is not None
        self.undisturbed = meta.annotations.get(DO_NOT_DISRUPT) == "true"


class NodeBook:
    """Nodes and Pods, as far as the shard and drains want to know."""

    def __init__(self, machines: MachineDirectory) -> None:
        self._machines = machines
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, PodOnNode] = {}
        self._on_node: dict[str, dict[str, PodOnNode]] = {}
        self._hosted: dict[str, str] = {}
        """Node by its host, and by the machine it is labelled with."""
        self._by_host: dict[str, str] = {}
        """Machine by the name or host by which its node is known."""
        self._words: dict[str, frozenset[str]] = {}
        self._changed: set[str] = set()
        self.on_change: list[Callable[[str], None]] = []
        """Told the names of nodes of which something changed."""

    # -- what comes in ---------------------------------------------------------------------------

    def node_seen(self, change: Change[Node]) -> None:
        """A Node came, changed or went."""
        found = change.new or change.old
        if found is None:
            return
        name = found.metadata.name
        if change.old is not None:
            for word in _words(change.old):
                if self._hosted.get(word) == name:
                    del self._hosted[word]
        if change.new is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = change.new
            self._hosted.update((word, name) for word in _words(change.new))
        if change.new is None or change.old is None or _shown(change.old) != _shown(change.new):
            self._note(name)

    def pod_seen(self, change: Change[Pod]) -> None:
        """A Pod came, changed or went."""
        before = self._pods.pop(change.key, None)
        if before is not None:
            on = self._on_node[before.node]
            del on[change.key]
            if not on:
                del self._on_node[before.node]
            self._note(before.node)
        pod = change.new
        if pod is not None and pod.spec.node_name and not pod.is_ended:
            one = self._pods[change.key] = PodOnNode(pod)
            self._on_node.setdefault(one.node, {})[change.key] = one
            self._note(one.node)

    def machine_changed(self, machine_id: str) -> None:
        """Something else is known of a machine."""
        known = self._machines.get(machine_id)
        words: set[str] = set()
        if known is not None:
            words = {known.node_name, known.provider_id.rpartition("/")[2], machine_id} - {""}
        before = self._words.get(machine_id, frozenset())
        for word in before - words:
            if self._by_host.get(word) == machine_id:
                del self._by_host[word]
        for word in words - before:
            self._by_host[word] = machine_id
        if words:
            self._words[machine_id] = frozenset(words)
        else:
            self._words.pop(machine_id, None)

    # -- what is asked ---------------------------------------------------------------------------

    def get(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def nodes(self) -> Iterable[Node]:
        """Every node."""
        return self._nodes.values()

    def machine_of(self, node: Node) -> str:
        """The machine a node is; empty where that is not known."""
        labelled = node.metadata.labels.get(MACHINE_ID, "")
        if labelled and self._machines.get(labelled) is not None:
            return labelled
        host = node.spec.provider_id.rpartition("/")[2]
        return (self._by_host.get(host) if host else None) or self._by_host.get(
            node.metadata.name, ""
        )

    def node_of(self, known: MachineNodeState) -> Node | None:
        """The node a machine has become."""
        host = known.provider_id.rpartition("/")[2]
        names = (
            known.node_name,
            self._hosted.get(known.machine_id, ""),
            self._hosted.get(host, "") if host else "",
            host,
            known.machine_id,
        )
        return next((self._nodes[name] for name in names if name in self._nodes), None)

    def find(self, entry: str) -> Node | None:
        """A node by its name or, where there is none, by its machine."""
        named = self._nodes.get(entry)
        if named is not None:
            return named
        known = self._machines.get(entry)
        return None if known is None else self.node_of(known)

    def to_evict(self, node_name: str) -> list[PodOnNode]:
        """The Pods that have to leave a node before it is empty."""
        return [pod for pod in self._on_node.get(node_name, {}).values() if pod.evictable]

    def observations(self, *, full: bool) -> pb.NodeObservations | None:
        """What the shard is told: everything, or what changed; None where nothing did."""
        names = list(self._nodes) if full else [n for n in self._changed if n in self._nodes]
        self._changed.clear()
        if not names and not full:
            return None
        return pb.NodeObservations(nodes=[self._observe(self._nodes[n]) for n in names], full=full)

    def count_late_nodes(self, is_late: Callable[[str], bool]) -> int:
        """Machines that should be Ready for a while and are not Ready."""
        return sum(
            1
            for known in self._machines.all()
            if known.phase == "Ready" and is_late(known.machine_id) and not self._is_ready(known)
        )

    def _is_ready(self, known: MachineNodeState) -> bool:
        node = self.node_of(known)
        return node is not None and ready_since(node) > 0

    def _observe(self, node: Node) -> pb.NodeObservation:
        name, since = node.metadata.name, ready_since(node)
        on = self._on_node.get(name, {})
        marked = DO_NOT_DISRUPT
        undisturbed = "true" in (
            node.metadata.annotations.get(marked), node.metadata.labels.get(marked),
        )  # fmt: skip
        return pb.NodeObservation(
            node_name=name,
            provider_id=node.spec.provider_id,
            machine_id=self.machine_of(node),
            ready=since > 0,
            ready_since_unix_nanos=since,
            unschedulable=node.spec.unschedulable,
            pods=sum(pod.evictable for pod in on.values()),
            do_not_disrupt=undisturbed or any(pod.undisturbed for pod in on.values()),
        )

    def _note(self, name: str) -> None:
        self._changed.add(name)
        for listener in self.on_change:
            listener(name)


def _words(node: Node) -> set[str]:
    host = node.spec.provider_id.rpartition("/")[2]
    return {host, node.metadata.labels.get(MACHINE_ID, "")} - {""}


def ready_since(node: Node) -> int:
    """Unix nanoseconds since when a node is Ready; 0 while it is not."""
    for condition in node.status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            try:
                since = datetime.fromisoformat(condition.last_transition_time).timestamp()
            except ValueError:
                return 1
            return max(1, int(since) * _NS)
    return 0


def _shown(node: Node) -> tuple[object, ...]:
    """What of a node is told; heartbeats are not."""
    marked = (node.metadata.annotations.get(DO_NOT_DISRUPT), node.metadata.labels)
    return (node.spec, ready_since(node), marked)
