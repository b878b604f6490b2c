"""Objects of one kind, and everything they ever were.

Each change is a new snapshot with its moment. The truth is the last one; a reader sees the one
that was the last some seconds ago, which is all that eventual consistency is. Objects move along
their life's table; who must know of it (pools, event queues) listens.
"""

import bisect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bigfleet_fakecloud.behaviour.delays import HORIZON, Delays
from bigfleet_fakecloud.errors import Conflict, NotFound, ScriptError
from bigfleet_fakecloud.state.life import Life
from bigfleet_fakecloud.state.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as it was at one moment. `entered` numbers its states, never the same twice."""

    ref: str
    state: str
    created: float
    changed: float
    entered: int
    fields: Mapping[str, object]
    tags: Mapping[str, str]


Listener = Callable[[Resource | None, Resource | None], None]


class Collection:
    """The objects of one kind."""

    def __init__(
        self, kind: str, life: Life, timeline: Timeline, delays: Delays, rng: random.Random
    ) -> None:
        self.kind = kind
        self.life = life
        self._timeline = timeline
        self._delays = delays
        self._rng = rng
        self._history: dict[str, list[tuple[float, Resource | None]]] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Be told of every change, with what was before and what is after."""
        self._listeners.append(listener)

    def create(
        self, ref: str, fields: Mapping[str, object], tags: Mapping[str, str] | None = None
    ) -> Resource:
        """A new object in the first state of its life."""
        with self._timeline.turn():
            if ref in self._history:
                raise ScriptError(f"there was a {self.kind} {ref} already; ids are never reused")
            now = self._timeline.now()
            made = Resource(ref, self.life.first, now, now, 0, dict(fields), dict(tags or {}))
            self._write(None, made)
            self._arrange(made)
            return made

    def truth(self, ref: str) -> Resource | None:
        """What an object really is now."""
        with self._timeline.turn():
            return self._last(ref)

    def everything(self) -> list[Resource]:
        """All objects as they really are."""
        with self._timeline.turn():
            found = (self._last(ref) for ref in self._history)
            return [resource for resource in found if resource is not None]

    def get(self, ref: str) -> Resource:
        """One object as a caller sees it."""
        with self._timeline.turn():
            seen = self._seen(ref, self._delays.lag_get)
            if seen is None:
                raise NotFound(f"no {self.kind} {ref}")
            return seen

    def list(self, where: Callable[[Resource], bool] = lambda _: True) -> list[Resource]:
        """All objects as a caller sees them."""
        with self._timeline.turn():
            seen = (self._seen(ref, self._delays.lag_list) for ref in self._history)
            return [resource for resource in seen if resource is not None and where(resource)]

    def act(self, ref: str, verb: str) -> Resource:
        """What a call does to an object; refused in the wrong state."""
        with self._timeline.turn():
            rule = self.life.verbs.get(verb)
            if rule is None:
                raise ScriptError(f"a {self.kind} has no verb {verb!r}; add it to its life")
            current = self._must(ref)
            if current.state in rule.stays:
                return current
            if current.state not in rule.of:
                raise Conflict(f"{verb} is not possible for {self.kind} {ref} in {current.state}")
            return self._enter(current, rule.to)

    def edit(
        self,
        ref: str,
        fields: Mapping[str, object] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Resource:
        """Add or change fields; replace all tags."""
        with self._timeline.turn():
            current = self._must(ref)
            changed = replace(
                current,
                changed=self._timeline.now(),
                fields={**current.fields, **(fields or {})},
                tags=current.tags if tags is None else dict(tags),
            )
            self._write(current, changed)
            return changed

    def happen(self, ref: str, event: str) -> Resource:
        """An event that no call asked for, in whatever state the object is."""
        with self._timeline.turn():
            state = self.life.events.get(event)
            if state is None:
                known = ", ".join(sorted(self.life.events)) or "none"
                raise ScriptError(f"nothing called {event!r} happens to a {self.kind}: {known}")
            return self._enter(self._must(ref), state)

    def vanish(self, ref: str) -> None:
        """The object is gone at once, without a trace."""
        with self._timeline.turn():
            self._remove(self._must(ref))

    def _must(self, ref: str) -> Resource:
        current = self._last(ref)
        if current is None:
            raise NotFound(f"no {self.kind} {ref}")
        return current

    def _last(self, ref: str) -> Resource | None:
        history = self._history.get(ref)
        return history[-1][1] if history else None

    def _seen(self, ref: str, lag: float) -> Resource | None:
        history = self._history.get(ref, [])
        if lag <= 0:
            return history[-1][1] if history else None
        before = bisect.bisect_right(history, self._timeline.now() - lag, key=lambda at: at[0])
        return history[before - 1][1] if before else None

    def _write(self, before: Resource | None, after: Resource | None) -> None:
        written = after or before
        assert written is not None
        now = self._timeline.now()
        history = self._history.setdefault(written.ref, [])
        history.append((now, after))
        old = bisect.bisect_right(history, now - HORIZON, key=lambda at: at[0])
        del history[: max(old - 1, 0)]
        for listener in self._listeners:
            listener(before, after)

    def _enter(self, current: Resource, state: str) -> Resource:
        entered = replace(
            current, state=state, changed=self._timeline.now(), entered=current.entered + 1
        )
        self._write(current, entered)
        self._arrange(entered)
        return entered

    def _remove(self, current: Resource) -> None:
        self._write(current, None)
        self._timeline.after(HORIZON, lambda: self._forget(current.ref))

    def _forget(self, ref: str) -> None:
        self._history[ref] = []

    def _arrange(self, entered: Resource) -> None:
        """Let the next step come by itself, unless the object went another way before."""
        then = self.life.steps.get(entered.state)
        if then is not None:
            step = then
            wait = self._delays.seconds(step.after, step.spread, self._rng)
            self._timeline.after(wait, lambda: self._if_still(entered, step.state))
        elif entered.state in self.life.vanishes:
            wait = self.life.vanishes[entered.state]
            self._timeline.after(wait, lambda: self._if_still(entered, None))

    def _if_still(self, entered: Resource, state: str | None) -> None:
        current = self._last(entered.ref)
        if current is None or current.entered != entered.entered:
            return
        if state is None:
            self._remove(current)
        else:
            self._enter(current, state)
