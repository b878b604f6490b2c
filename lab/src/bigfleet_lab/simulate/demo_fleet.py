"""A small fleet whose demand moves: the world behind `bigfleet simulate demo`.

Three clusters and 120 machines: 48 owned ones that cost nothing more, 72 elastic ones that do.
Demand comes in three tiers. Production moves round the clusters like daylight, batch fills what is
cheap, and now and then something critical arrives that may push batch aside. Machines and demand
are modelled; what is done with them is decided by the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Final

from bigfleet.decision import Engine, Plan, Policy
from bigfleet.model import CapacityType, MachineState, Need, PenaltyBucket, Profile
from bigfleet.model.columns import Demand
from bigfleet.model.facts import ClusterFacts
from bigfleet.scenario.document import MachineRecord, Scenario
from bigfleet.scenario.state import START, ScenarioState
from bigfleet_lab.simulate.loop import Delay, Delays, Loop

CLUSTERS: Final = ("atlas", "borealis", "cirrus")
SHAPE: Final = {"cpu": 8_000, "memory": 32 * 1024**3 * 1000}
POD: Final = {"cpu": 2_000, "memory": 8 * 1024**3 * 1000}
PODS_PER_MACHINE: Final = 4
DAY: Final = 90
"""Cycles in which demand goes once round the clusters."""
DELAYS: Final = Delays(Delay(1, 4), Delay(0, 2), Delay(0, 2))


@dataclass(frozen=True, slots=True)
class Tier:
    """A kind of demand: how important, and what losing a machine costs."""

    name: str
    priority: int
    penalty: PenaltyBucket


TIERS: Final = (
    Tier("batch", 100, PenaltyBucket.ZERO),
    Tier("production", 1_000, PenaltyBucket.HALF_DOLLAR),
    Tier("critical", 1_000_000, PenaltyBucket.DOLLARS_16),
)


def fleet() -> Scenario:
    """48 owned machines, Idle; 40 on-demand and 32 spot slots that do not exist yet."""

    def machines(
        start: int, count: int, paid: CapacityType, price: float, probability: float
    ) -> MachineRecord:
        owned = paid in (CapacityType.BARE_METAL, CapacityType.RESERVED)
        return MachineRecord(
            start=start,
            count=count,
            instance_type="gp.2xlarge",
            zones=("z-a", "z-b", "z-c"),
            rack_size=8,
            capacity_type=paid,
            price=price,
            interruption_probability=probability,
            allocatable=SHAPE,
            state=MachineState.IDLE if owned else MachineState.SPECULATIVE,
        )

    return Scenario(
        "demo",
        (
            machines(0, 24, CapacityType.BARE_METAL, 0.0, 0.0),
            machines(24, 24, CapacityType.RESERVED, 0.0, 0.0),
            machines(48, 40, CapacityType.ON_DEMAND, 0.38, 0.05),
            machines(88, 32, CapacityType.SPOT, 0.12, 0.30),
        ),
    )


def pods(cycle: int, cluster: int, tier: Tier, noise: Random) -> int:
    """How many pods a tier of a cluster has in a cycle."""
    phase = cycle / DAY - cluster / len(CLUSTERS)
    day = 0.5 + 0.5 * math.cos(2 * math.pi * phase)
    if tier.name == "production":
        return round(24 + 120 * day**2) + noise.randint(-2, 2)
    if tier.name == "batch":
        # Batch runs where it is night, and a rush of it fills the fleet in the middle of each day.
        rush = 120 if cluster == 1 and DAY // 3 <= cycle % DAY < DAY * 2 // 3 else 0
        return max(0, round(88 * (1 - day)) + rush + noise.randint(-3, 3))
    burst = DAY // 2 <= cycle % DAY < DAY * 3 // 4 and cycle // DAY % len(CLUSTERS) == cluster
    return 60 if burst else 0


class DemoFleet:
    """The fleet, its moving demand, and the loop they live in."""

    def __init__(self, seed: int, engine: Engine | None = None) -> None:
        world = ScenarioState.of(fleet(), Policy())
        self.loop = Loop(world, DELAYS, seed, engine or Engine())
        self.needs: list[Need] = []
        self._seed = seed
        self._profiles = {
            tier.name: Profile.of(
                priority=tier.priority, interruption=tier.penalty, reclamation=tier.penalty
            )
            for tier in TIERS
        }
        self._shrunk: dict[tuple[str, str], int] = {}
        self._asked: dict[tuple[str, str], int] = {}

    @property
    def world(self) -> ScenarioState:
        """The machines and what is asked of them now."""
        return self.loop.world

    @property
    def seconds(self) -> int:
        """Virtual seconds since the beginning."""
        return (self.world.now - START) // 1_000_000_000

    def step(self) -> Plan:
        """Move the demand on, and let one cycle pass."""
        self.needs = self._needs_now()
        facts = {cluster: ClusterFacts() for cluster in CLUSTERS}
        self.loop.change_demand(Demand.of(self.needs, facts, self.world.symbols))
        return self.loop.step()

    def tier_of(self, need: Need) -> Tier:
        """The tier a need belongs to."""
        return next(tier for tier in TIERS if tier.priority == need.profile.priority)

    def _needs_now(self) -> list[Need]:
        cycle, needs = self.loop.cycle, []
        # Noise changes every few cycles, as roll-ups do, not with every one.
        noise = Random(f"{self._seed} {cycle // 6}")
        for number, cluster in enumerate(CLUSTERS):
            for tier in TIERS:
                count = pods(cycle // 3 * 3, number, tier, noise)
                key = (cluster, tier.name)
                if count < self._asked.get(key, 0):
                    self._shrunk[key] = self.world.now
                self._asked[key] = count
                if count:
                    needs.append(self._need(cluster, tier, count))
        return needs

    def _need(self, cluster: str, tier: Tier, count: int) -> Need:
        return Need(
            cluster=cluster,
            profile=self._profiles[tier.name],
            aggregate={name: amount * count for name, amount in POD.items()},
            min_unit=POD,
            arrival_ns=START,
            shrunk_at=self._shrunk.get((cluster, tier.name), 0),
        )
