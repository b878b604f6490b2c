"""Pods that fit on no node although everything their cluster asked for has come.

Demand is added up by row, and a row is met by its sum: Pods of 1.5 and of 2 CPU can be short of one
node of 4 that way. Where the cluster's owner wants it, room for such a Pod is asked for a second
time, by a request that lives as long as the Pod does. Chosen here are the Pods, few at a time and
only after a quiet while, so that a slow provider is not taken for a node that is missing. Writing
the request is the controller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from bigfleet.kube import Change
from bigfleet.podcontroller.arrivals import ARRIVING
from bigfleet.podcontroller.notices import unmet_condition
from bigfleet.podcontroller.pods import ArrivingNode, DemandPod, PodRequest
from bigfleet.podcontroller.request import Document, request_name

SECOND: Final = "bigfleet.lucy.sh/asked-again"
"""A label of second requests."""
LONGEST_PAUSE: Final = 15.0
_PREFIX: Final = "cr-again-"
_SHARE: Final = 10


def second_name(pod_name: str, uid: str) -> str:
    """The name of a Pod's second request."""
    return request_name(pod_name, uid, _PREFIX)


def second_of(request: Document, pod: DemandPod) -> Document:
    """The same room once more."""
    meta = request["metadata"]
    name = second_name(pod.metadata.name, pod.metadata.uid)
    labels = {**meta["labels"], SECOND: "true"}
    return {**request, "metadata": {**meta, "name": name, "labels": labels}}


def is_met(request: PodRequest | None) -> bool:
    """Whether the shard knows of a request and does not say that it lacks something."""
    if request is None or request.status.phase != "Acknowledged":
        return False
    return unmet_condition(request) is None


class StuckPods:
    """Whose room is asked for again. `now` is Unix seconds; `after` 0 chooses no Pod."""

    def __init__(self, after: float, now: Callable[[], float]) -> None:
        self.after = after
        self._now = now
        self._arriving: set[str] = set()
        self._quiet_since = now()

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(LONGEST_PAUSE, self.after / 2)

    def machine_seen(self, change: Change[ArrivingNode]) -> None:
        """An UpcomingNode came, changed or went."""
        if change.new is not None and change.new.status.phase in ARRIVING:
            self._arriving.add(change.key)
        elif change.key in self._arriving:
            self._arriving.discard(change.key)
            self._quiet_since = self._now()

    def choose(self, met: Iterable[DemandPod]) -> list[DemandPod]:
        """Of Pods whose own request is met, and that have no second one: whose turn it is."""
        now = self._now()
        if self._arriving:
            self._quiet_since = now
        if not self.after or now - self._quiet_since < self.after:
            return []
        stuck = [
            pod
            for pod in met
            if not _is_of_a_gang(pod) and _waits_since(pod, now) <= now - self.after
        ]
        if not stuck:
            return []
        # What the first ones bring may be room for the others as well.
        self._quiet_since = now
        stuck.sort(key=lambda pod: (-(pod.spec.priority or 0), _waits_since(pod, now), pod.key))
        return stuck[: max(1, len(stuck) // _SHARE)]


def _is_of_a_gang(pod: DemandPod) -> bool:
    """A gang that asks for more may have to move as a whole: worse than one Pod that waits."""
    near = pod.spec.affinity and pod.spec.affinity.pod_affinity
    return bool(near and near.required_during_scheduling_ignored_during_execution)


def _waits_since(pod: DemandPod, now: float) -> float:
    """When the scheduler first found no node for it; now, where it did not."""
    if pod.spec.node_name:
        return now
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            try:
                return datetime.fromisoformat(condition.last_transition_time).timestamp()
            except ValueError:
                return now
    return now
