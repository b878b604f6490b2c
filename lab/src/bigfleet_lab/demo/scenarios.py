"""What can be made to happen to a running demo, one scenario each.

A scenario gives orders to the simulated cloud and clusters, or ends a process; what BigFleet makes
of it is BigFleet's affair. Everything wears off by itself, and one can be played after the other.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

A_WHILE: Final = 90.0
"""Seconds for which demand stays as a scenario sets it."""
ZONE: Final = "north-1b"
_CLUSTERS: Final = ("atlas", "borealis", "cirrus")


class Stage(Protocol):
    """What scenarios are played on."""

    async def order(self, part: str, **order: object) -> None:
        """Tell a simulated part what to do."""
        ...

    def strike(self, part: str, number: signal.Signals, down_seconds: float) -> None:
        """End a process; it comes back after so many seconds."""
        ...


Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that can happen. `watch` says what is seen of it, `look` on which screen."""

    name: str
    short: str
    title: str
    watch: str
    look: str
    play: Play


async def _ask(stage: Stage, cluster: str, tier: str, pods: int) -> None:
    await stage.order("clusters", do="ask", cluster=cluster, tier=tier, pods=pods, seconds=A_WHILE)


async def _move(stage: Stage) -> None:
    await _ask(stage, "atlas", "production", 12)
    await _ask(stage, "cirrus", "production", 150)


async def _saturate(stage: Stage) -> None:
    for cluster in _CLUSTERS:
        await _ask(stage, cluster, "production", 120)
        await _ask(stage, cluster, "batch", 160)


async def _critical(stage: Stage) -> None:
    for cluster in _CLUSTERS:
        await _ask(stage, cluster, "batch", 150)
    # Long enough for batch to have claimed what is free: whatever it holds then has to be taken.
    await asyncio.sleep(4)
    await _ask(stage, "atlas", "critical", 160)


async def _zone(stage: Stage) -> None:
    await stage.order("provider", do="lose_zone", zone=ZONE)
    await asyncio.sleep(60)
    await stage.order("provider", do="restore", zone=ZONE)


async def _spot(stage: Stage) -> None:
    await stage.order("provider", do="reclaim_spot", share=0.7)


async def _sold_out(stage: Stage) -> None:
    await stage.order("provider", do="sell_out")
    await _ask(stage, "borealis", "production", 180)
    await asyncio.sleep(60)
    await stage.order("provider", do="restock")


async def _coordinator(stage: Stage) -> None:
    stage.strike("coordinator", signal.SIGKILL, 10.0)


async def _shard(stage: Stage) -> None:
    stage.strike("shard", signal.SIGTERM, 0.5)


SCENARIOS: Final = (
    Scenario(
        "move", "Demand moves", "Demand moves from atlas to cirrus",
        "Atlas gives machines up and cirrus gets them, instead of new ones being bought.",
        "/clusters", _move,
    ),
    Scenario(
        "saturate", "Saturate the fleet", "All clusters ask for more than there is",
        "Everything is bought, production (class service) is served first, and batch says why it "
        "is unmet.",
        "/needs", _saturate,
    ),
    Scenario(
        "critical", "Critical job", "A critical job of atlas preempts batch",
        "What is free is not enough, so machines are taken from batch, the cheapest to interrupt.",
        "/decisions", _critical,
    ),
    Scenario(
        "zone", "Zone fails", f"Zone {ZONE} fails",
        "A third of the map turns Failed; what ran there is replaced in the other zones.",
        "/", _zone,
    ),
    Scenario(
        "spot", "Spot reclaims", "The market takes 70 % of the spot machines back",
        "Spot machines fail, and what they served gets others.",
        "/", _spot,
    ),
    Scenario(
        "soldout", "Sold out", "The provider runs out of gp.2xlarge",
        "Creates fail, the offering is put behind the others, and needs wait for stock.",
        "/providers", _sold_out,
    ),
    Scenario(
        "coordinator", "Leader dies", "The coordinator's leader is killed",
        "For ten seconds no replica leads; the shard keeps deciding, and no cluster notices.",
        "/topology", _coordinator,
    ),
    Scenario(
        "shard", "Shard restarts", "The shard restarts",
        "Sessions come back and no machine is lost; the shard's epoch rises.",
        "/shards/s-1", _shard,
    ),
)  # fmt: skip
BY_NAME: Final = {scenario.name: scenario for scenario in SCENARIOS}
