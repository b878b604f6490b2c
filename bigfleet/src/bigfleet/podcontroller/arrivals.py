"""Nodes that are on their way to this cluster: for which need, and when they are expected.

Everything follows from objects of the cluster, so that a restart loses nothing. An UpcomingNode
says since when its machine comes, and by a label for which profile; a Node says since when it is
Ready. Nodes of one instance type that came before say how long the next one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final

from bigfleet.kube import Change
from bigfleet.kube.fleet import GROUP_ANNOTATION, PROFILE_LABEL
from bigfleet.podcontroller.pods import ArrivingNode, RequestNeed, WatchedNode

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
ARRIVING: Final = frozenset({"", "Provisioning", "Launched", "Registered"})
"""Phases of a machine that is not a node yet."""
REMEMBERED: Final = 20
"""Nodes of a type that say how long the next one takes: the newest."""
LONGEST_S: Final = 3600.0
"""A node that took longer was held up by something that says nothing about the next one."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The nodes on their way for one need, and the first of them."""

    count: int
    first: str
    """Name of the UpcomingNode that has been on its way for the longest time."""
    kind: str
    """Its instance type and zone, for people."""
    expected_unix_s: float | None
    """When it should be Ready; None where no node of its type has come yet."""


class ComingNodes:
    """UpcomingNodes by need, and how long nodes take. `now` is Unix seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._machines: dict[str, ArrivingNode] = {}
        self._of_need: dict[RequestNeed, dict[str, None]] = {}
        """Names of all UpcomingNodes that were taken for a need."""
        self._ready_unix_s: dict[str, float] = {}
        """By name of a Node that is Ready: since when."""
        self._usual_s: dict[str, float] | None = None

    def machine_seen(self, change: Change[ArrivingNode]) -> None:
        """An UpcomingNode came, changed or went."""
        self._usual_s = None
        before = self._machines.pop(change.key, None)
        if before is not None:
            names = self._of_need.get(need_of(before), {})
            names.pop(change.key, None)
            if not names:
                self._of_need.pop(need_of(before), None)
        if change.new is not None:
            self._machines[change.key] = change.new
            self._of_need.setdefault(need_of(change.new), {})[change.key] = None

    def node_seen(self, change: Change[WatchedNode]) -> None:
        """A Node came, changed or went."""
        since = None if change.new is None else _ready_since(change.new)
        if since != self._ready_unix_s.get(change.key):
            self._usual_s = None
        if since is None:
            self._ready_unix_s.pop(change.key, None)
        else:
            self._ready_unix_s[change.key] = since

    def of(self, need: RequestNeed | None) -> Arrivals | None:
        """What is on its way for a need; None where nothing is."""
        if need is None or not need.profile:
            return None
        names = self._of_need.get(need, ())
        coming = [m for name in names if self._is_coming(m := self._machines[name])]
        if not coming:
            return None
        first = min(coming, key=lambda machine: (_started(machine), machine.metadata.name))
        labels = first.spec.labels or {}
        kind, zone = labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, "")
        usual_s = self._usual().get(kind)
        return Arrivals(
            count=len(coming),
            first=first.metadata.name,
            kind=" in ".join(part for part in (kind, zone) if part),
            expected_unix_s=None if usual_s is None else _started(first) + usual_s,
        )

    def _is_coming(self, machine: ArrivingNode) -> bool:
        status = machine.status
        if status.phase in ARRIVING:
            return True
        # The provider has handed it over, but its kubelet may not have joined yet.
        is_new = self._now() - _started(machine) < LONGEST_S
        return status.phase == "Ready" and is_new and _node(machine) not in self._ready_unix_s

    def _usual(self) -> dict[str, float]:
        """Seconds from the order to a Ready node, by instance type."""
        if self._usual_s is None:
            taken: dict[str, list[tuple[float, float]]] = {}
            for kind, started, seconds in self._arrived():
                taken.setdefault(kind, []).append((started, seconds))
            self._usual_s = {
                kind: median(seconds for _, seconds in sorted(found)[-REMEMBERED:])
                for kind, found in taken.items()
            }
        return self._usual_s

    def _arrived(self) -> Iterator[tuple[str, float, float]]:
        for machine in self._machines.values():
            ready, started = self._ready_unix_s.get(_node(machine)), _started(machine)
            if ready is not None and started and 0 <= ready - started < LONGEST_S:
                yield (machine.spec.labels or {}).get(INSTANCE_TYPE, ""), started, ready - started


def need_of(machine: ArrivingNode) -> RequestNeed:
    """The need a machine was taken for; one without a profile where the operator does not say."""
    labels, annotations = machine.metadata.labels or {}, machine.metadata.annotations or {}
    return RequestNeed(labels.get(PROFILE_LABEL, ""), annotations.get(GROUP_ANNOTATION, ""))


def _node(machine: ArrivingNode) -> str:
    return (machine.status.node_ref or {}).get("name", "")


def _started(machine: ArrivingNode) -> float:
    return _unix_s(machine.status.provisioning_start_time) or 0.0


def _ready_since(node: WatchedNode) -> float | None:
    for condition in node.status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            return _unix_s(condition.last_transition_time)
    return None


def _unix_s(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
