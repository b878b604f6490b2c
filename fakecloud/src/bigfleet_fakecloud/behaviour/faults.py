"""Failures on order: which call, at which moment, what then, how often.

A rule is a value; the book picks the first that fits and counts it. `before` means that nothing
was applied, `after` that everything was and only the answer is wrong or lost: the two halves of
every crash. A hook is called at that moment, for example to kill the caller.
"""

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fnmatch import fnmatchcase

from bigfleet_fakecloud.errors import Injected, ScriptError


class Moment(StrEnum):
    """When a rule applies."""

    BEFORE = "before"
    AFTER = "after"
    OPERATION = "operation"


class Effect(StrEnum):
    """What then happens. An operation can only fail."""

    FAIL = "fail"
    DROP = "drop"
    DELAY = "delay"
    HOOK = "hook"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Rule:
    """`op` is a call's name or a pattern of it; `times` None is forever; `skip` pass first.

    `pid` is the process that the effect `kill` ends with SIGKILL: the caller, at exactly this call.
    """

    op: str = "*"
    moment: Moment = Moment.BEFORE
    effect: Effect = Effect.FAIL
    status: int = 500
    code: str = "internal_error"
    text: str = "a failure was ordered"
    retry_after: float | None = None
    delay: float = 0.0
    skip: int = 0
    times: int | None = 1
    chance: float = 1.0
    hook: Callable[[], None] | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        if (self.effect is Effect.KILL) is not (self.pid is not None):
            raise ScriptError("kill needs the pid of a process, and no other effect takes one")
        if self.pid is not None and self.pid <= 1:
            raise ScriptError(f"pid is the number of one process above 1, not {self.pid}")
        if self.moment is Moment.OPERATION and self.effect is not Effect.FAIL:
            raise ScriptError(f"an operation can only fail, not {self.effect}")
        if not 0.0 <= self.chance <= 1.0:
            raise ScriptError(f"a chance is from 0 to 1, not {self.chance}")
        if not 100 <= self.status <= 599:
            raise ScriptError(f"{self.status} is not a status of HTTP; give one from 100 to 599")

    def problem(self) -> Injected:
        """The answer of a rule that fails."""
        return Injected(self.status, self.code, self.text, self.retry_after)

    @staticmethod
    def parse(values: Mapping[str, object]) -> "Rule":
        """From the body of a control call."""
        known = {item.name for item in fields(Rule)} - {"hook"}
        unknown = set(values) - known
        if unknown:
            raise ScriptError(f"a rule has no {', '.join(sorted(unknown))}; it has {sorted(known)}")
        try:
            return Rule(
                op=str(values.get("op", "*")),
                moment=Moment(str(values.get("moment", Moment.BEFORE))),
                effect=Effect(str(values.get("effect", Effect.FAIL))),
                status=int(_number(values, "status", 500)),
                code=str(values.get("code", "internal_error")),
                text=str(values.get("text", "a failure was ordered")),
                retry_after=_optional(values, "retry_after", None),
                delay=_number(values, "delay", 0.0),
                skip=int(_number(values, "skip", 0)),
                times=None if (n := _optional(values, "times", 1)) is None else int(n),
                chance=_number(values, "chance", 1.0),
                pid=None if (p := _optional(values, "pid", None)) is None else int(p),
            )
        except ValueError as error:
            raise ScriptError(f"a rule cannot be read: {error}") from error


def _optional(values: Mapping[str, object], name: str, usual: float | None) -> float | None:
    value = values.get(name, usual)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ScriptError(f"{name} of a rule is a number, not {value!r}")


def _number(values: Mapping[str, object], name: str, usual: float) -> float:
    value = _optional(values, name, usual)
    return usual if value is None else value


@dataclass(slots=True)
class _Entry:
    rule: Rule
    seen: int = field(default=0)
    fired: int = field(default=0)


class Faults:
    """The rules in force, in the order in which they were given."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._numbers = itertools.count(1)
        self._entries: dict[int, _Entry] = {}

    def add(self, rule: Rule) -> int:
        """Put a rule in force; its number."""
        number = next(self._numbers)
        self._entries[number] = _Entry(rule)
        return number

    def remove(self, number: int) -> None:
        """Take a rule back; a rule that is gone already is fine."""
        self._entries.pop(number, None)

    def clear(self) -> None:
        """Take all rules back."""
        self._entries.clear()

    def fired(self, number: int) -> int:
        """How often a rule applied."""
        return self._entries[number].fired if number in self._entries else 0

    def pick(self, op: str, moment: Moment) -> Rule | None:
        """The rule that applies to this call now, counted."""
        for entry in self._entries.values():
            rule = entry.rule
            if rule.moment is not moment or not fnmatchcase(op, rule.op):
                continue
            if rule.times is not None and entry.fired >= rule.times:
                continue
            entry.seen += 1
            if entry.seen <= rule.skip:
                continue
            if rule.chance < 1.0 and self._rng.random() >= rule.chance:
                continue
            entry.fired += 1
            return rule
        return None
