"""Two shards, a coordinator between them, and one that lacks what the other one has.

The donor is s1: the zones z-a and z-c are its own, and most machines. The recipient is s2: it has
z-b, and the cluster c2, which asks for two machines more than there are in z-b.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bigfleet.model import CapacityType
from sim.drawing import ProviderPlan
from sim.process import Process
from sim.settled import unsettled
from whole.living import Setting, Wants, Whole, cluster, offers, work

EACH: Final = 3
"""Machines in each zone."""
WANTED: Final = EACH + 2
TIERS: Final = ("idle", "quota", "preempt")
HOMES: Final = {"c1": "s1", "c2": "s2"}


def starving(tier: str = "idle", seed: int = 1) -> Setting:
    """What c2 lacks is Idle at s1, could be bought there, or serves something humble there."""
    kind = CapacityType.ON_DEMAND if tier == "quota" else CapacityType.RESERVED
    machines = ProviderPlan("p1", offers(3 * EACH, kind))
    humble = _wants("c1", 2 * EACH if tier == "preempt" else 1, priority=1)
    return Setting([machines], [humble, _wants("c2", WANTED, 1_000)], homes=HOMES, seed=seed)


def _wants(name: str, count: int, priority: int) -> Wants:
    return replace(cluster(name), replicas=((work(f"{name}/w", priority=priority), count),))


@dataclass(frozen=True, slots=True)
class Window:
    """What each process did between two moments, in steps."""

    begin: dict[str, int]
    end: dict[str, int]

    def steps(self, name: str) -> int:
        """How many steps a process took."""
        return self.end[name] - self.begin[name]


def processes(whole: Whole) -> dict[str, Process]:
    """Donor, recipient and coordinator, as they live now."""
    coordinator = whole.world.coordinator
    assert coordinator is not None
    lives = {name: host.life.process for name, host in whole.world.hosts.items()}
    return {**lives, "coordinator": coordinator.process}


def steps(whole: Whole) -> dict[str, int]:
    """How far every process has come."""
    return {name: process.steps for name, process in processes(whole).items()}


async def until_planned(whole: Whole) -> None:
    """Until the coordinator has planned to help s2."""
    coordinator = whole.world.coordinator
    assert coordinator is not None
    await whole.until(lambda: bool(coordinator.stored_moves()), 300.0, "a planned move")


async def until_helped(whole: Whole, seconds: float = 1_800.0) -> None:
    """Until c2 has all it wants and every move is over and forgotten."""
    await whole.until(lambda: whole.bound("c2") == WANTED, seconds, "what c2 lacks")
    await until_still(whole)


async def until_still(whole: Whole) -> None:
    """Until no move is under way. What s1 lacks from then on is asked for again and again."""
    await whole.until(lambda: not _under_way(whole), 600.0, "the end of all moves")


def _under_way(whole: Whole) -> bool:
    world, coordinator = whole.world, whole.world.coordinator
    assert coordinator is not None
    held = any(world.owners.of(host).transfers for host in world.hosts.values())
    return held or any(not move.phase.is_over for move in coordinator.stored_moves())


def owned_once(whole: Whole) -> None:
    """Every machine has one owner, who has it in its book."""
    complaint = unsettled(whole.world)
    # Coming to rest takes longer; whose is what does not.
    assert complaint is None or complaint[0] not in ("S14", "L2"), complaint
