"""Which nodes BigFleet brought, so that a cluster that existed before gets no second fleet.

A node is ours when it says so by a label, or when an UpcomingNode names it or its provider id. A
node that is not known yet is not called foreign at once: for a while after it appeared the operator
may simply not have written its UpcomingNode, and a Pod on it must not lose its demand meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final

from bigfleet.podcontroller.pods import ArrivingNode, WatchedNode

MACHINE_ID: Final = "bigfleet.lucy.sh/machine-id"
"""A label of nodes, an annotation of UpcomingNodes."""
NEW_SECONDS: Final = 120.0


class Whose(Enum):
    """Who brought a node."""

    OURS = 1
    FOREIGN = 2
    UNKNOWN = 3
    """Too new to be judged, or not seen yet: its Pods stay demand."""


class NodeOwnership:
    """Nodes and UpcomingNodes as far as they say who brought a node. `now` is Unix seconds.

    Changes are told to `on_change` with the names of the nodes that may be judged otherwise now.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._nodes: dict[str, tuple[bool, str, float]] = {}
        """By name: whether it is labelled, its host, when it appeared."""
        self._on_host: dict[str, set[str]] = {}
        self._machines: dict[str, frozenset[str]] = {}
        """By name of an UpcomingNode: the names and hosts by which its node is known."""
        self._known: dict[str, int] = {}
        self.on_change: list[Callable[[str], None]] = []

    def whose(self, node_name: str) -> Whose:
        """Who brought a node."""
        if node_name in self._known:
            return Whose.OURS
        node = self._nodes.get(node_name)
        if node is None:
            return Whose.UNKNOWN
        labelled, host, appeared = node
        if labelled or host in self._known:
            return Whose.OURS
        return Whose.UNKNOWN if self._now() - appeared < NEW_SECONDS else Whose.FOREIGN

    def put_node(self, node: WatchedNode) -> None:
        """A node is there, or changed."""
        name = node.metadata.name
        labels = node.metadata.labels or {}
        host = node.spec.provider_id.rpartition("/")[2]
        fact = (MACHINE_ID in labels, host, _unix(node.metadata.creation_timestamp))
        if self._nodes.get(name) != fact:
            self.drop_node(name)
            self._nodes[name] = fact
            self._on_host.setdefault(host, set()).add(name)
            self._tell(name)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        node = self._nodes.pop(name, None)
        if node is not None:
            self._on_host[node[1]].discard(name)
            if not self._on_host[node[1]]:
                del self._on_host[node[1]]

    def put_machine(self, upcoming: ArrivingNode) -> None:
        """An UpcomingNode is there, or changed."""
        status = upcoming.status
        words = {
            (status.node_ref or {}).get("name", ""),
            status.provider_id.rpartition("/")[2],
            (upcoming.metadata.annotations or {}).get(MACHINE_ID, ""),
        }
        self._set(upcoming.metadata.name, frozenset(words - {""}))

    def drop_machine(self, name: str) -> None:
        """An UpcomingNode is gone."""
        self._set(name, frozenset())

    def _set(self, upcoming: str, words: frozenset[str]) -> None:
        before = self._machines.get(upcoming, frozenset())
        if words:
            self._machines[upcoming] = words
        else:
            self._machines.pop(upcoming, None)
        changed = before ^ words
        for word in before - words:
            self._known[word] -= 1
            if not self._known[word]:
                del self._known[word]
        for word in words - before:
            self._known[word] = self._known.get(word, 0) + 1
        for word in changed:
            for name in {word, *self._on_host.get(word, ())}:
                self._tell(name)

    def _tell(self, name: str) -> None:
        for handler in self.on_change:
            handler(name)


def _unix(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
