"""The disturbances that a profile may ask for: their names, and what they need.

What an action does and what must hold afterwards belongs to the runner; here is what can be checked
before anything starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NAME: Final = r"([a-z0-9][a-z0-9.-]*)"


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action, its name with {name} for what it strikes."""

    form: str
    replicas: int = 1
    """Coordinator replicas it needs."""
    lasts: bool = False
    """Whether it needs a duration."""
    samples_seconds: float = 180.0
    """How long its recovery is watched."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """What its names look like."""
        return re.compile(re.escape(self.form).replace(r"\{name\}", NAME))


KINDS: Final = (
    ActionKind("kill-coordinator-leader", replicas=3),
    ActionKind("kill-shard-{name}"),
    ActionKind("partition-coordinator-from-shard-{name}", lasts=True),
    ActionKind("kill-provider-{name}"),
    ActionKind("kill-operator-{name}"),
    ActionKind("pause-coordinator-leader", replicas=3, lasts=True),
    ActionKind("partition-coordinator-leader", replicas=3, lasts=True),
    ActionKind("kill-store-member-{name}", replicas=3),
    ActionKind("partition-operator-from-shard-{name}", lasts=True),
    ActionKind("stop-control-plane", lasts=True),
    ActionKind("fail-rack-{name}"),
    ActionKind("fail-zone-{name}", samples_seconds=300.0),
    ActionKind("spot-wave-{name}"),
    ActionKind("stockout-{name}"),
    ActionKind("throttle-provider"),
)


def kind_of(action: str) -> tuple[ActionKind, str] | None:
    """The kind of an action and what it strikes; None for an action that is unknown."""
    for kind in KINDS:
        match = kind.pattern.fullmatch(action)
        if match is not None:
            return kind, match.group(1) if match.groups() else ""
    return None


def shard_names(shards: int) -> tuple[str, ...]:
    """What shards are called in actions."""
    return tuple(f"bigfleet-shard-{number}" for number in range(shards))
