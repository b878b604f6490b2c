"""What clusters say of the nodes that machines have become: names, readiness, pods.

Never needed for correctness: a cluster that says nothing leaves the provider's word alone. A full
observation replaces what was known of a cluster, so a Configured machine without a node in it has
no Ready node, no pods, no name and nothing that must not be disturbed; a partial one speaks of the
nodes it names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bigfleet.model import MachineState
from bigfleet.model.columns import Flag
from bigfleet.observe.process import Clock
from bigfleet.shard.machines.book import Book

# What a cluster says of its nodes, as values, and which machine a node is.


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node as its cluster sees it. `machine_id` is empty when the operator does not know it."""

    name: str
    provider_id: str = ""
    machine_id: str = ""
    ready: bool = False
    ready_since_ns: int = 0
    unschedulable: bool = False
    pods: int | None = None
    do_not_disrupt: bool = False

    @property
    def host_ref(self) -> str:
        """The host the provider id names: what stands after its last slash."""
        return self.provider_id.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class NodeFindings:
    """What an observation shows that is not as it should be, by machine."""

    cordoned: list[str]
    """Nodes held cordoned without our asking."""
    strange: list[str]
    """Machines the cluster takes for its own and which are not Configured for it."""


class NodeObservations:
    """The nodes of all clusters, by machine."""

    def __init__(self, book: Book, clock: Clock) -> None:
        self._book = book
        self._clock = clock
        self._names: dict[str, str] = {}

    def node_name(self, machine_id: str) -> str:
        """What a machine's node is called; empty while no cluster reported it."""
        return self._names.get(machine_id, "")

    def set_nodes(self, cluster: str, nodes: Iterable[NodeSeen], *, full: bool) -> NodeFindings:
        """Take an observation; what it shows that is not as it should be."""
        mine = self._configured(cluster)
        refs: dict[str, str] | None = None
        seen: dict[str, NodeSeen] = {}
        strange: list[str] = []
        for node in nodes:
            machine_id = node.machine_id if node.machine_id in mine else ""
            if not machine_id:
                if node.machine_id:
                    strange.append(node.machine_id)
                refs = self._refs(mine) if refs is None else refs
                machine_id = refs.get(node.host_ref) or refs.get(node.name, "")
            if machine_id:
                seen[machine_id] = node
        self._write(seen, mine)
        if full:
            self._without_node([m for m in mine if m not in seen], mine)
        self._name(seen)
        cordoned = [m for m, node in seen.items() if node.unschedulable and not mine[m].leaving]
        return NodeFindings(cordoned, strange)

    def forget(self, machine_id: str) -> None:
        """A machine that stopped being a node."""
        self._names.pop(machine_id, None)

    def _configured(self, cluster: str) -> dict[str, _Row]:
        fleet = self._book.snapshot()
        number = self._book.symbols.clusters.find(cluster)
        rows = np.flatnonzero((fleet.cluster == number) & (fleet.state == MachineState.CONFIGURED))
        if number < 0:
            return {}
        leaving = (fleet.flags[rows] & 1) > 0
        return {
            fleet.ids[row]: _Row(row, bool(left))
            for row, left in zip(rows.tolist(), leaving.tolist(), strict=True)
        }

    def _refs(self, mine: Iterable[str]) -> dict[str, str]:
        refs: dict[str, str] = {}
        for machine_id in mine:
            machine = self._book.get(machine_id)
            if machine is not None and machine.host is not None:
                refs[machine.host.ref] = machine_id
            refs[machine_id] = machine_id
            name = self._names.get(machine_id)
            if name:
                refs[name] = machine_id
        return refs

    def _write(self, seen: dict[str, NodeSeen], mine: dict[str, _Row]) -> None:
        now = self._clock.now()
        known = self._book.snapshot().not_ready_since
        rows = np.array([mine[m].number for m in seen], np.int64)
        marks = np.array([n.do_not_disrupt for n in seen.values()], bool)
        counted = np.array([n.pods is not None for n in seen.values()], bool)
        pods = np.array([n.pods or 0 for n in seen.values()], np.int64)
        since = np.array(
            [0 if node.ready else known.get(mine[m].number, 0) or now for m, node in seen.items()],
            np.int64,
        )
        before = np.array([known.get(row, 0) for row in rows.tolist()], np.int64)
        changed = since != before
        self._book.observe_nodes(
            (rows, marks), (rows[counted], pods[counted]), (rows[changed], since[changed])
        )

    def _name(self, seen: dict[str, NodeSeen]) -> None:
        """Remember what nodes are called, and tell of names that are new."""
        for machine_id, node in seen.items():
            if node.name and self._names.get(machine_id) != node.name:
                self._names[machine_id] = node.name
                self._book.announce(machine_id)

    def _without_node(self, machine_ids: list[str], mine: dict[str, _Row]) -> None:
        """Of these only one thing is known, that they are not nodes; only what changes is
        written.
        """
        fleet = self._book.snapshot()
        rows = np.array([mine[m].number for m in machine_ids], np.int64)
        marked = rows[(fleet.flags[rows] & Flag.DO_NOT_DISRUPT) > 0]
        counted = rows[fleet.pods[rows] >= 0]
        ready = rows[(fleet.flags[rows] & Flag.NOT_READY) == 0]
        self._book.observe_nodes(
            (marked, np.zeros(len(marked), bool)),
            (counted, np.full(len(counted), -1, np.int64)),
            (ready, np.full(len(ready), self._clock.now(), np.int64)),
        )
        for machine_id in machine_ids:
            self.forget(machine_id)


class _Row:
    __slots__ = ("leaving", "number")

    def __init__(self, number: int, leaving: bool) -> None:
        self.number = number
        self.leaving = leaving
