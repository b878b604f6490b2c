"""Life cycles as tables: which states there are, what follows by itself, what a call may change.

Pure values. A page writes one table per kind of object; the collection walks through it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bigfleet_fakecloud.errors import ScriptError


@dataclass(frozen=True, slots=True)
class Then:
    """What a state becomes by itself, after how many seconds; `spread` is a fraction of them."""

    state: str
    after: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Verb:
    """A call that moves an object from some states to another; in `stays` it does nothing."""

    of: frozenset[str]
    to: str
    stays: frozenset[str] = frozenset()

    @staticmethod
    def move(*of: str, to: str, stays: tuple[str, ...] = ()) -> "Verb":
        """The same, written in one line."""
        return Verb(frozenset(of), to, frozenset(stays))


@dataclass(frozen=True, slots=True)
class Life:
    """The table of one kind of object.

    `events` are what happens to it without a call (a stop from outside, a preemption) and force a
    state. In `released` states it holds no quota and no stock any more. `vanishes` says how long
    the record of a final state can still be read.
    """

    first: str
    steps: Mapping[str, Then] = field(default_factory=dict)
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    released: frozenset[str] = frozenset()
    vanishes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        reached = {self.first, *self.events.values()}
        reached |= {then.state for then in self.steps.values()}
        reached |= {verb.to for verb in self.verbs.values()}
        named = {*self.steps, *self.released, *self.vanishes}
        for verb in self.verbs.values():
            named |= verb.of | verb.stays
        if named - reached:
            raise ScriptError(
                f"nothing leads to {', '.join(sorted(named - reached))}; name it right"
            )
        for start in self.steps:
            self._refuse_circle(start)

    def _refuse_circle(self, start: str) -> None:
        """Steps that follow by themselves in a circle would keep the first reader forever."""
        state, seen = start, set[str]()
        while state in self.steps:
            if state in seen:
                raise ScriptError(f"the steps from {start} never end; one must wait for a call")
            seen.add(state)
            state = self.steps[state].state
