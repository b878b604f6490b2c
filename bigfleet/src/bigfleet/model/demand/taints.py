"""Taints of machines and the tolerations of needs, by the rules of Kubernetes.

A machine may serve a need only if the need tolerates each of its taints that bind: those with the
effects NoSchedule and NoExecute. A taint PreferNoSchedule never excludes a machine; where it is not
tolerated the machine comes after machines of the same cost without one. Which clusters state their
tolerations at all is a fact of the cluster (`facts`); the rules here know nothing of it.

Kubernetes lets a toleration with tolerationSeconds cover NoExecute for that time only. A machine is
bought for longer, so readers of Pods leave such tolerations out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bigfleet.model.errors import TaintError, shown


class TaintEffect(StrEnum):
    """What a taint does to Pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """How the value of a taint is compared."""

    EQUAL = "Equal"
    EXISTS = "Exists"


BINDING: Final = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})
"""Effects that keep a machine from needs without a toleration."""


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A taint that a provider declares for the node of a machine. Build it with `of`."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE

    @classmethod
    def of(cls, key: str, value: str = "", effect: str = TaintEffect.NO_SCHEDULE) -> Taint:
        """The taint, or a TaintError that says what does not fit."""
        if not key:
            raise TaintError("a taint has no key: name it, as in dedicated=gpu:NoSchedule")
        return cls(key, value, _effect(key, effect))

    @property
    def binds(self) -> bool:
        """Whether it keeps a machine from needs that do not tolerate it."""
        return self.effect in BINDING

    def __str__(self) -> str:
        """As `kubectl taint` writes it, for example `dedicated=gpu:NoSchedule`."""
        what = f"{self.key}={self.value}" if self.value else self.key
        return f"{what}:{self.effect}"


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """One toleration of a need. Build it with `of`. An empty key or effect stands for every one."""

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EXISTS
    value: str = ""
    effect: str = ""

    @classmethod
    def of(cls, key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
        """The toleration, or a TaintError that says what does not fit; no operator means Equal."""
        try:
            how = TolerationOperator(operator or TolerationOperator.EQUAL)
        except ValueError:
            raise TaintError(
                f"toleration of {shown(key)!r}: operator {shown(operator)!r} is unknown: use Equal "
                "or Exists"
            ) from None
        if how is TolerationOperator.EXISTS and value:
            raise TaintError(
                f"toleration of {shown(key)!r}: Exists takes no value, but has {shown(value)!r}: "
                "leave the value out or use Equal"
            )
        if how is TolerationOperator.EQUAL and not key:
            raise TaintError("a toleration without a key must have the operator Exists")
        return cls(key, how, value, _effect(key, effect) if effect else "")

    def tolerates(self, taint: Taint) -> bool:
        """Whether it covers this taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator is TolerationOperator.EXISTS or self.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """The taints that none of the tolerations covers, in the order given."""
    known = tuple(tolerations)
    return [taint for taint in taints if not any(each.tolerates(taint) for each in known)]


def admits(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether a machine with these taints may serve a need with these tolerations."""
    return not any(taint.binds for taint in untolerated(taints, tolerations))


def canonical_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Taints in their one order, none twice, so that equal sets are equal values."""
    return tuple(sorted(set(taints)))


def _effect(key: str, effect: str) -> TaintEffect:
    try:
        return TaintEffect(effect)
    except ValueError:
        raise TaintError(
            f"effect {shown(effect)!r} of {shown(key)!r} is unknown: use NoSchedule, "
            "PreferNoSchedule or NoExecute"
        ) from None
