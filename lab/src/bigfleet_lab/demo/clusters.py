"""The three simulated clusters as a process: sessions to the shard, demand that moves by itself.

Demand follows the same day as `bigfleet simulate demo`, in minutes instead of hours. An order sets
the pods of one tier of one cluster for a while; afterwards the day goes on where it would be.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

import uvloop

from bigfleet.model import LABEL_ZONE, Profile, Requirement, RequirementOperator, Resources
from bigfleet.observe.logs import configure_logs
from bigfleet_lab.demo.orders import Order, number, obey_until_told, text
from bigfleet_lab.simcluster import (
    Behaviour,
    SimCluster,
    SimFleet,
    SimOperator,
    Workload,
    WorkObject,
)
from bigfleet_lab.simcluster.behaviour import Span
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import WallClock
from bigfleet_lab.simcluster.stats import Stats
from bigfleet_lab.simulate.demo_fleet import CLUSTERS, DAY, TIERS, Tier, pods

DAY_SECONDS: Final = 360.0
_EVERY_SECONDS: Final = 4.0
_GI: Final = 1024**3 * 1000
_TIERS: Final = {tier.name: tier for tier in TIERS}


@dataclass(frozen=True, slots=True)
class App:
    """A kind of pods, and its share of a tier's demand, counted in pods of two CPUs."""

    name: str
    tier: str
    share: float
    cpus: float


APPS: Final = (
    App("web", "production", 0.55, 2),
    App("api", "production", 0.45, 1),
    App("etl", "batch", 0.65, 2),
    App("reports", "batch", 0.35, 0.5),
    App("payments", "critical", 1.0, 2),
)
TRAINING: Final = "training"
_GANG: Final = 8
_GANG_CLUSTER: Final = CLUSTERS[1]


class Day:
    """What every cluster asks for, now."""

    def __init__(self, fleet: SimFleet, seed: int) -> None:
        self._fleet, self._seed = fleet, seed
        self._began = time.monotonic()
        self._set: dict[tuple[str, str], tuple[int, float]] = {}
        """Cluster and tier -> pods, and until when."""

    async def run(self) -> None:
        """Move demand until cancelled."""
        while True:
            self.move()
            await asyncio.sleep(_EVERY_SECONDS)

    def move(self) -> None:
        """Ask for what this time of day asks for."""
        now = time.monotonic()
        cycle = int((now - self._began) / DAY_SECONDS * DAY)
        noise = Random(f"{self._seed} {cycle // 4}")
        for index, cluster in enumerate(CLUSTERS):
            for tier in TIERS:
                natural = pods(cycle // 2 * 2, index, tier, noise)
                wanted, until = self._set.get((cluster, tier.name), (natural, now + 1))
                self._ask(cluster, tier, wanted if until > now else natural)

    async def obey(self, order: Order) -> None:
        """One order."""
        if text(order, "do") != "ask":
            raise ValueError(f"{order['do']!r} is not an order for the clusters")
        cluster, tier = text(order, "cluster"), text(order, "tier")
        if cluster not in CLUSTERS or tier not in _TIERS:
            raise ValueError(f"there is no tier {tier!r} of a cluster {cluster!r}")
        until = time.monotonic() + number(order, "seconds")
        self._set[cluster, tier] = (int(number(order, "pods")), until)
        self.move()

    def _ask(self, cluster: str, tier: Tier, count: int) -> None:
        workload = self._fleet[cluster].cluster.workload
        for app in APPS:
            if app.tier == tier.name:
                workload.scale(app.name, round(count * app.share * 2 / app.cpus))


def make_fleet(shard: str, seed: int) -> tuple[SimFleet, GrpcDial]:
    """Three clusters that are not connected yet."""
    dial, stats, chance = GrpcDial(shard), Stats(), Random(seed)
    behaviour = Behaviour(
        rollup_seconds=5.0, join_seconds=Span(0.5, 2.0), evict_seconds=Span(0.5, 2.0)
    )
    operators = []
    for name in CLUSTERS:
        own = Random(chance.getrandbits(64))
        cluster = SimCluster(name, _workload(name), WallClock(), own, behaviour, stats)
        operators.append(SimOperator(cluster, dial, own))
    return SimFleet(operators, stats, chance), dial


def _workload(cluster: str) -> Workload:
    workload = Workload()
    for app in APPS:
        tier = _TIERS[app.tier]
        workload.add(WorkObject(app.name, _profile(tier), _request(app.cpus)), 0)
    if cluster == _GANG_CLUSTER:
        together = (Requirement.of(LABEL_ZONE, RequirementOperator.SAME),)
        gang = _profile(_TIERS["batch"], together)
        workload.add(WorkObject(TRAINING, gang, _request(4), f"{LABEL_ZONE}|{TRAINING}"), _GANG)
    return workload


def _profile(tier: Tier, requirements: tuple[Requirement, ...] = ()) -> Profile:
    return Profile.of(requirements, (), tier.priority, tier.penalty, tier.penalty)


def _request(cpus: float) -> Resources:
    return {"cpu": round(cpus * 1000), "memory": round(cpus * 4 * _GI)}


async def serve(shard: str, seed: int) -> None:
    """Live until told to stop."""
    fleet, dial = make_fleet(shard, seed)
    day = Day(fleet, seed)
    tasks = [asyncio.create_task(fleet.run(1.0)), asyncio.create_task(day.run())]
    try:
        await obey_until_told(partial(day.obey))
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        await dial.close()


def main() -> None:
    """Run the process."""
    words = argparse.ArgumentParser(prog="bigfleet-demo-clusters", allow_abbrev=False)
    words.add_argument("--shard", required=True)
    words.add_argument("--seed", type=int, default=1)
    given = words.parse_args()
    configure_logs()
    uvloop.run(serve(given.shard, given.seed))


if __name__ == "__main__":
    main()
