"""What the owner of a Pod reads in its Events: room was asked for, a node comes, or why none does.

Each of them is written when it becomes true and not again while it stays so. A Pod gets at most
five an hour; what finds no room among them is written later, if it is still true. The words of a
reason are those of the shard, which name no other cluster; what to do about it is left to
`kubectl bigfleet why`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from bigfleet.kube import EventRecorder, ObjectRef
from bigfleet.observe.settings import format_duration
from bigfleet.podcontroller.arrivals import Arrivals
from bigfleet.podcontroller.pods import DemandPod, PodRequest, RequestCondition

REQUESTED: Final = "CapacityRequested"
ON_ITS_WAY: Final = "NodeOnItsWay"
UNMET: Final = "CapacityUnmet"
PROBLEM: Final = "CapacityRequest"
"""The Pod, or its annotations, cannot be understood as they are meant."""
MOST: Final = 5
WITHIN_S: Final = 3600.0
UNSUPPORTED: Final = "CapacityUnsupported"
"""A ResourceClaim of the Pod cannot be counted, so that it gets no request."""
Amounts = Mapping[str, str | int]


@dataclass(slots=True)
class _NoticesOfPod:
    """What was written for a Pod's owner."""

    uid: str
    at_unix_s: tuple[float, ...] = ()
    """Of the Events that count against the limit."""
    unmet: str = ""
    is_coming: bool = False
    problems: set[str] = field(default_factory=set)


class PodNotices:
    """Events on Pods. `now` is Unix seconds."""

    def __init__(self, events: EventRecorder, now: Callable[[], float]) -> None:
        self._events, self._now = events, now
        self._notices: dict[tuple[str, str], _NoticesOfPod] = {}

    def __len__(self) -> int:
        return len(self._notices)

    def requested(self, pod: DemandPod, request: str, resources: Amounts) -> None:
        """Its CapacityRequest was created; of a Pod that runs already, nothing is said."""
        if pod.spec.node_name or not self._may_tell(notices := self._of(pod)):
            return
        amounts = resources.items()
        amounts_text = ", ".join(f"{name} {amount}" for name, amount in amounts if name != "pods")
        words = f"Asked BigFleet for {amounts_text} (CapacityRequest {request})."
        self._events.normal(_ref(pod), REQUESTED, words, once=request)
        self._count(notices)

    def problem(self, pod: DemandPod, words: str, reason: str = PROBLEM) -> None:
        """Something about the Pod itself that its owner has to know; said once."""
        notices = self._of(pod)
        if words not in notices.problems and self._may_tell(notices):
            notices.problems.add(words)
            self._events.warn(_ref(pod), reason, words, once=words)
            self._count(notices)

    def waits(self, pod: DemandPod, request: PodRequest | None, arrivals: Arrivals | None) -> None:
        """How a Pod without a node stands. Says what has become true since the last look."""
        condition = None if request is None else unmet_condition(request)
        known = self._notices.get(pod.key)
        if condition is None and arrivals is None and known is None:
            return
        notices = self._of(pod)
        if arrivals is None:
            notices.is_coming = False
        elif not notices.is_coming and self._may_tell(notices):
            notices.is_coming = True
            once = f"{arrivals.first} {pod.metadata.uid}"
            self._events.normal(
                _ref(pod), ON_ITS_WAY, arrival_words(arrivals, self._now()), once=once
            )
            self._count(notices)
        if condition is None:
            notices.unmet = ""
        elif notices.unmet != condition.reason and self._may_tell(notices):
            notices.unmet = condition.reason
            words = f"No room for this Pod yet: {condition.message or condition.reason}."
            once = f"{condition.reason} {condition.last_transition_time}"
            self._events.warn(_ref(pod), UNMET, words, once=once)
            self._count(notices)

    def forget(self, key: tuple[str, str]) -> None:
        """The Pod is gone."""
        self._notices.pop(key, None)

    def _of(self, pod: DemandPod) -> _NoticesOfPod:
        notices = self._notices.get(pod.key)
        if notices is None or notices.uid != pod.metadata.uid:
            notices = self._notices[pod.key] = _NoticesOfPod(pod.metadata.uid)
        return notices

    def _may_tell(self, notices: _NoticesOfPod) -> bool:
        return sum(at > self._now() - WITHIN_S for at in notices.at_unix_s) < MOST

    def _count(self, notices: _NoticesOfPod) -> None:
        notices.at_unix_s = (*notices.at_unix_s, self._now())[-MOST:]


def arrival_words(arrivals: Arrivals, now_unix_s: float) -> str:
    """How many nodes are on their way for a Pod's demand, and when the first is expected."""
    count = arrivals.count
    kind = f" ({arrivals.kind})" if arrivals.kind else ""
    head = "A node is" if count == 1 else f"{count} nodes are"
    which = "It" if count == 1 else "The first"
    when = _expected_words(which, arrivals.expected_unix_s, now_unix_s)
    return f"{head} on the way for the demand of this Pod{kind}. {when}."


def _expected_words(which: str, expected_unix_s: float | None, now_unix_s: float) -> str:
    if expected_unix_s is None:
        return "How long a node of this type takes is not known yet"
    at = datetime.fromtimestamp(expected_unix_s, UTC).strftime("%H:%M:%S UTC")
    left = round(expected_unix_s - now_unix_s)
    if left > 0:
        return f"{which} is expected at {at}, in about {format_duration(left)}"
    return f"{which} was expected at {at} and takes longer than nodes of its type usually do"


def unmet_condition(request: PodRequest) -> RequestCondition | None:
    """The condition that says why a request is not met, where it has one."""
    for condition in request.status.conditions or ():
        if condition.type == "Unmet" and condition.status == "True":
            return condition
    return None


def _ref(pod: DemandPod) -> ObjectRef:
    meta = pod.metadata
    return ObjectRef("v1", "Pod", meta.name, meta.namespace, meta.uid)
