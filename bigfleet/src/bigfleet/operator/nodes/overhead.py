"""What DaemonSets take on every node of this cluster.

A DaemonSet that chooses its nodes, other than by operating system, is not on every node and is
left out: better to bring a little too much than to believe that every machine loses what only some
do. Such Pods run where their nodes have room.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bigfleet.kube.podspec import pod_resources
from bigfleet.model import QuantityError, add
from bigfleet.operator.nodes.objects import DaemonSet

_EVERYWHERE: Final = frozenset({"kubernetes.io/os", "beta.kubernetes.io/os"})


def runs_everywhere(daemon_set: DaemonSet) -> bool:
    """Whether its Pods are on every node."""
    spec = daemon_set.spec.template.spec
    if not _EVERYWHERE.issuperset(spec.node_selector):
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    return not (affinity and affinity.required_during_scheduling_ignored_during_execution)


def node_overhead(daemon_sets: Iterable[DaemonSet]) -> dict[str, int]:
    """Milli-units per resource that every node loses; empty where there is nothing."""
    total: dict[str, int] = {}
    for daemon_set in daemon_sets:
        if not runs_everywhere(daemon_set):
            continue
        try:
            total = add(total, pod_resources(daemon_set.spec.template.spec))
        except QuantityError:
            # The API server has checked it; what it let pass is not worth losing the rest for.
            continue
    return total
