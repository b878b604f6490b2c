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
    """Something that can happen. `watch` says where its effect is seen."""

    name: str
    short: str
    title: str
    watch: str
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
    await asyncio.sleep(8)
    await _ask(stage, "atlas", "critical", 80)


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
        "move", "Demand moves", "Demand moves from one cluster to another",
        "atlas gives machines up, cirrus gets them: the map by cluster, and Decisions", _move,
    ),
    Scenario(
        "saturate", "Saturate the fleet", "Saturate the fleet",
        "everything is bought, batch stays unmet: Needs says why", _saturate,
    ),
    Scenario(
        "critical", "Critical job", "A critical job preempts batch",
        "Preempt in Decisions: atlas' payments take machines that batch had", _critical,
    ),
    Scenario(
        "zone", "Zone fails", f"Zone {ZONE} fails",
        "a third of the map turns Failed; what ran there is replaced in the other zones", _zone,
    ),
    Scenario(
        "spot", "Spot reclaims", "Spot reclaims 70 % of its machines",
        "spot machines fail; replacements are provisioned", _spot,
    ),
    Scenario(
        "soldout", "Sold out", "The provider runs out of gp.2xlarge",
        "Creates fail and cool off, the need says STOCK_OUT: Providers and Needs", _sold_out,
    ),
    Scenario(
        "coordinator", "Leader dies", "The coordinator's leader dies",
        "Topology loses its leader for ten seconds; the shard keeps deciding", _coordinator,
    ),
    Scenario(
        "shard", "Shard restarts", "The shard restarts",
        "sessions come back, no machine is lost: the epoch of s-1 rises", _shard,
    ),
)  # fmt: skip
BY_NAME: Final = {scenario.name: scenario for scenario in SCENARIOS}
