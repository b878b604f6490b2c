"""How demand moves: churn, steps, growth, shedding, turnover, drawn from one source of chance.

Each is a function of a workload; when they happen is told by the caller. `Curve` is a
written sequence of them for a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from bigfleet_lab.simcluster.errors import WorkloadError
from bigfleet_lab.simcluster.workload import Workload


class Change(StrEnum):
    """Kinds of change."""

    CHURN = "churn"
    """A share of the objects gets other replicas; the total stays about the same."""
    STEP = "step"
    """Every object is scaled to this share of what it has."""
    GROW = "grow"
    """A share of the objects doubles."""
    SHED = "shed"
    """A share of the objects goes to zero."""
    TURNOVER = "turnover"
    """A share of the objects is over; as many of the same kind begin under new names."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change at a time, in seconds from the start."""

    at_seconds: float
    change: Change
    share: float


Curve = tuple[Step, ...]


def apply(workload: Workload, change: Change, share: float, rng: Random) -> None:
    """Let demand move once."""
    if share < 0:
        raise WorkloadError(f"{change} {share}: use a share of zero or more")
    match change:
        case Change.CHURN:
            churn(workload, share, rng)
        case Change.STEP:
            step(workload, share)
        case Change.GROW:
            grow(workload, share, rng)
        case Change.SHED:
            shed(workload, share, rng)
        case Change.TURNOVER:
            turn_over(workload, share, rng)


def churn(workload: Workload, share: float, rng: Random) -> None:
    """One pod more or one less, evenly, but a gang stays whole and an object never vanishes."""
    for name in _some(workload, share, rng):
        count = workload.replicas(name)
        if workload[name].group or not count:
            continue
        if rng.random() < 0.5 and count > 1:
            workload.scale(name, count - 1)
        else:
            workload.scale(name, count + 1)


def step(workload: Workload, factor: float) -> None:
    """Everything to this multiple, rounded; what had pods keeps one as long as factor is not 0."""
    for name in workload.names:
        count = workload.replicas(name)
        if count:
            workload.scale(name, max(1, round(count * factor)) if factor else 0)


def grow(workload: Workload, share: float, rng: Random) -> None:
    """Some objects double."""
    for name in _some(workload, share, rng):
        workload.scale(name, max(1, 2 * workload.replicas(name)))


def shed(workload: Workload, share: float, rng: Random) -> None:
    """Some objects go to zero and stay, so that they can come back."""
    for name in _some(workload, share, rng):
        workload.scale(name, 0)


def turn_over(workload: Workload, share: float, rng: Random) -> None:
    """Jobs end, and the next ones begin: gangs come back as other gangs."""
    for name in _some(workload, share, rng):
        over, count = workload[name], workload.replicas(name)
        mark = f"{rng.getrandbits(32):08x}"
        workload.remove(name)
        fresh = replace(
            over,
            name=f"{name.partition('.')[0]}.{mark}",
            group=f"{over.group.partition('.')[0]}.{mark}" if over.group else "",
        )
        workload.add(fresh, count)


def _some(workload: Workload, share: float, rng: Random) -> list[str]:
    names = workload.names
    exact = min(1.0, share) * len(names)
    # Small shares of small clusters must happen now and then, not never.
    count = int(exact) + (rng.random() < exact - int(exact))
    return rng.sample(names, count)
