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
from bigfleet.podcontroller.coming import Arrivals
from bigfleet.podcontroller.pods import Pod, Request, RequestCondition

REQUESTED: Final = "CapacityRequested"
ON_ITS_WAY: Final = "NodeOnItsWay"
UNMET: Final = "CapacityUnmet"
PROBLEM: Final = "CapacityRequest"
"""The Pod, or its annotations, cannot be understood as they are meant."""
MOST: Final = 5
WITHIN_S: Final = 3600.0
Amounts = Mapping[str, str | int]


@dataclass(slots=True)
class _Told:
    """What a Pod's owner has been told."""

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
        self._told: dict[tuple[str, str], _Told] = {}

    def __len__(self) -> int:
        return len(self._told)

    def requested(self, pod: Pod, request: str, resources: Amounts) -> None:
        """Its CapacityRequest was created; of a Pod that runs already, nothing is said."""
        if pod.spec.node_name or not self._may_tell(told := self._of(pod)):
            return
        amounts = resources.items()
        asked = ", ".join(f"{name} {amount}" for name, amount in amounts if name != "pods")
        words = f"Asked BigFleet for {asked} (CapacityRequest {request})."
        self._events.normal(_ref(pod), REQUESTED, words, once=request)
        self._count(told)

    def problem(self, pod: Pod, words: str) -> None:
        """Something about the Pod itself that its owner has to know; said once."""
        told = self._of(pod)
        if words not in told.problems and self._may_tell(told):
            told.problems.add(words)
            self._events.warn(_ref(pod), PROBLEM, words, once=words)
            self._count(told)

    def waits(self, pod: Pod, request: Request | None, arrivals: Arrivals | None) -> None:
        """How a Pod without a node stands. Says what has become true since the last look."""
        condition = None if request is None else unmet_condition(request)
        known = self._told.get(pod.key)
        if condition is None and arrivals is None and known is None:
            return
        told = self._of(pod)
        if arrivals is None:
            told.is_coming = False
        elif not told.is_coming and self._may_tell(told):
            told.is_coming = True
            once = f"{arrivals.first} {pod.metadata.uid}"
            self._events.normal(
                _ref(pod), ON_ITS_WAY, arrival_words(arrivals, self._now()), once=once
            )
            self._count(told)
        if condition is None:
            told.unmet = ""
        elif told.unmet != condition.reason and self._may_tell(told):
            told.unmet = condition.reason
            words = f"No room for this Pod yet: {condition.message or condition.reason}."
            once = f"{condition.reason} {condition.last_transition_time}"
            self._events.warn(_ref(pod), UNMET, words, once=once)
            self._count(told)

    def forget(self, key: tuple[str, str]) -> None:
        """The Pod is gone."""
        self._told.pop(key, None)

    def _of(self, pod: Pod) -> _Told:
        told = self._told.get(pod.key)
        if told is None or told.uid != pod.metadata.uid:
            told = self._told[pod.key] = _Told(pod.metadata.uid)
        return told

    def _may_tell(self, told: _Told) -> bool:
        return sum(at > self._now() - WITHIN_S for at in told.at_unix_s) < MOST

    def _count(self, told: _Told) -> None:
        told.at_unix_s = (*told.at_unix_s, self._now())[-MOST:]


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


def unmet_condition(request: Request) -> RequestCondition | None:
    """The condition that says why a request is not met, where it has one."""
    for condition in request.status.conditions or ():
        if condition.type == "Unmet" and condition.status == "True":
            return condition
    return None


def _ref(pod: Pod) -> ObjectRef:
    meta = pod.metadata
    return ObjectRef("v1", "Pod", meta.name, meta.namespace, meta.uid)
