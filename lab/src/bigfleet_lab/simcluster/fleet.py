"""Many clusters at one shard, from one process.

Each cluster has its own source of chance, drawn from the fleet's, so that one cluster's fate does
not depend on what the others do. They start spread over one roll-up interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from random import Random

from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.demand_changes import Curve
from bigfleet_lab.simcluster.generator import Mix, make_workload
from bigfleet_lab.simcluster.operator import SimOperator
from bigfleet_lab.simcluster.ports import Clock, Dial
from bigfleet_lab.simcluster.stats import Stats


class SimFleet:
    """Clusters by id, and what happened to all of them."""

    def __init__(self, operators: Iterable[SimOperator], stats: Stats, rng: Random) -> None:
        self._operators = {operator.cluster.id: operator for operator in operators}
        self.stats = stats
        self._rng = rng

    @classmethod
    def make(
        cls,
        dial: Dial,
        clock: Clock,
        rng: Random,
        *,
        clusters: int,
        rows: int,
        behaviour: Behaviour | None = None,
        mix: Mix | None = None,
        name: Callable[[int], str] = "sim-{:04d}".format,
    ) -> SimFleet:
        """A seeded fleet; the same for the same source of chance."""
        stats, operators = Stats(), []
        for number in range(clusters):
            own = Random(rng.getrandbits(64))
            workload = make_workload(own, rows, mix)
            cluster = SimCluster(name(number), workload, clock, own, behaviour, stats)
            operators.append(SimOperator(cluster, dial, own))
        return cls(operators, stats, rng)

    def __len__(self) -> int:
        return len(self._operators)

    def __iter__(self) -> Iterator[SimOperator]:
        return iter(self._operators.values())

    def __getitem__(self, cluster_id: str) -> SimOperator:
        return self._operators[cluster_id]

    async def run(self, over_seconds: float = 0.0, curve: Curve = ()) -> None:
        """All clusters, started over this many seconds, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number, operator in enumerate(self):
                delay = over_seconds * number / len(self)
                tasks.create_task(operator.run(delay, curve), name=operator.cluster.id)

    async def storm(self, share: float, times: int, every_seconds: float) -> None:
        """Cut the lines of a share of the clusters, again and again."""
        for number in range(times):
            if number:
                await asyncio.sleep(every_seconds)
            for operator in self._rng.sample(list(self), round(share * len(self))):
                operator.disconnect()

    @property
    def connected(self) -> int:
        """Clusters with a session the shard acknowledged."""
        return sum(operator.connected for operator in self)
