"""What goes wrong, when and for how long, as values drawn from a seed.

A fault is a kind, a beginning, a duration and whom it strikes. What each kind does to a running
world is told in `injecting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Final


class FaultKind(StrEnum):
    """Everything that can go wrong."""

    NETWORK_STORM = "network-storm"
    """Loss, duplicates, stragglers and resets everywhere."""
    CUT_PROVIDER = "cut-provider"
    CUT_CLUSTER = "cut-cluster"
    BREAK_STREAMS = "break-streams"
    SHARD_CRASH = "shard-crash"
    """At any step."""
    SHARD_CRASH_AT_COMMIT = "shard-crash-at-commit"
    """Right before or after a provider accepted something."""
    SHARD_CRASH_AT_WRITE = "shard-crash-at-write"
    """Around a write to its disk."""
    SHARD_PAUSE = "shard-pause"
    SHARD_ZOMBIE = "shard-zombie"
    """A second process of the shard starts while the first is paused; the first wakes up."""
    SHARD_LOSES_DISK = "shard-loses-disk"
    DISK_FULL = "disk-full"
    CLOCK_JUMP = "clock-jump"
    PROVIDER_RESTART = "provider-restart"
    PROVIDER_SLOW = "provider-slow"
    PROVIDER_FAILING = "provider-failing"
    STOCK_OUT = "stock-out"
    QUOTA = "quota"
    SHORT_LIST = "short-list"
    GARBAGE_LIST = "garbage-list"
    PRICE_JUMP = "price-jump"
    RETIRED_SLOTS = "retired-slots"
    HOST_LOSS = "host-loss"
    RACK_LOSS = "rack-loss"
    SPOT_NOTICE = "spot-notice"
    BOOTSTRAP_ERRORS = "bootstrap-errors"
    SILENT_CLUSTER = "silent-cluster"
    SLOW_READER = "slow-reader"
    GARBAGE_FRAMES = "garbage-frames"
    EMPTY_ROLLUP = "empty-rollup"
    SECOND_OPERATOR = "second-operator"
    NODE_LOSS = "node-loss"
    COORDINATOR_CRASH = "coordinator-crash"
    """At any step."""
    COORDINATOR_AWAY = "coordinator-away"
    COORDINATOR_ZOMBIE = "coordinator-zombie"
    """Another one leads while the first is paused; the first wakes up."""
    CUT_COORDINATOR = "cut-coordinator"
    STORE_AWAY = "store-away"


K = FaultKind
NETWORK: Final = frozenset({K.NETWORK_STORM, K.CUT_PROVIDER, K.CUT_CLUSTER, K.BREAK_STREAMS})
OF_SHARD: Final = frozenset(kind for kind in K if kind.startswith("shard"))
OF_PROVIDER: Final = frozenset(
    {
        *(K.CUT_PROVIDER, K.PROVIDER_RESTART, K.PROVIDER_SLOW, K.PROVIDER_FAILING, K.STOCK_OUT),
        *(K.QUOTA, K.SHORT_LIST, K.GARBAGE_LIST, K.PRICE_JUMP, K.RETIRED_SLOTS, K.HOST_LOSS),
        *(K.RACK_LOSS, K.SPOT_NOTICE),
    }
)
OF_CLUSTER: Final = frozenset(
    {
        *(K.CUT_CLUSTER, K.BREAK_STREAMS, K.BOOTSTRAP_ERRORS, K.SILENT_CLUSTER, K.SLOW_READER),
        *(K.GARBAGE_FRAMES, K.EMPTY_ROLLUP, K.SECOND_OPERATOR, K.NODE_LOSS),
    }
)
OF_COORDINATOR: Final = frozenset(
    {
        *(K.COORDINATOR_CRASH, K.COORDINATOR_AWAY, K.COORDINATOR_ZOMBIE, K.CUT_COORDINATOR),
        K.STORE_AWAY,
    }
)
ALONE: Final = frozenset({K.SHARD_LOSES_DISK})
"""Not where there are several shards: what a shard was given is written down at its own alone."""
AT_A_SHARD: Final = OF_SHARD | {K.DISK_FULL, K.CLOCK_JUMP, K.CUT_PROVIDER, K.CUT_COORDINATOR}
_HOW_MANY: Final = {"none": (0, 0), "light": (2, 4), "medium": (5, 10), "storm": (14, 25)}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong."""

    kind: FaultKind
    at: float
    seconds: float
    target: str
    strength: float
    """Between 0 and 1; what it means depends on the kind."""
    shard: str = ""
    """At which shard, where there are several."""

    def __str__(self) -> str:
        whom = "".join(f" {one}" for one in (self.target, self.shard) if one)
        return f"{self.kind}{whom} at {self.at:.1f} s for {self.seconds:.1f} s"


def draw_faults(
    rng: Random,
    severity: str,
    seconds: float,
    providers: Sequence[str],
    clusters: Sequence[str],
    shards: Sequence[str] = (),
) -> tuple[Fault, ...]:
    """The faults of a run, in the order they begin; all of them end with it."""
    least, most = _HOW_MANY[severity]
    several = len(shards) > 1
    kinds = sorted(set(FaultKind) - (ALONE if several else OF_COORDINATOR))
    drawn = []
    for _ in range(rng.randint(least, most)):
        kind = rng.choice(kinds)
        at = rng.uniform(5.0, seconds * 0.95)
        duration = min(rng.choice((2.0, 20.0, 60.0, 180.0)) * rng.uniform(0.5, 1.0), seconds - at)
        target = ""
        if kind in OF_PROVIDER:
            target = rng.choice(list(providers))
        elif kind in OF_CLUSTER:
            target = rng.choice(list(clusters))
        fault = Fault(kind, round(at, 3), round(duration, 3), target, rng.random())
        if several and kind in AT_A_SHARD:
            fault = replace(fault, shard=rng.choice(list(shards)))
        drawn.append(fault)
    return tuple(sorted(drawn, key=lambda fault: (fault.at, fault.kind)))
