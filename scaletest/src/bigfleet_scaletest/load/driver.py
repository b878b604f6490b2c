"""All simulated clusters of a run, in one process: sessions to the shards, churn, and samples.

It plans the same fleet as the runner from the same flags, connects every cluster to its shard and
writes a sample a second to a file. Orders come on standard input: `soak` starts the schedule of the
profile and the churn. When standard input closes it ends.

python -m bigfleet_scaletest.load.driver --shard NAME=ADDRESS... --samples FILE, and the run's flags
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, TextIO

import uvloop

from bigfleet.observe.logs import configure_logs
from bigfleet_lab.demo.orders import Order, obey_until_told, text
from bigfleet_lab.profiles.archetypes import archetype
from bigfleet_lab.simcluster import Behaviour, SimCluster, SimFleet, SimOperator
from bigfleet_lab.simcluster.behaviour import Span
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import WallClock
from bigfleet_lab.simcluster.stats import Stats
from bigfleet_scaletest.load.demand import (
    ClusterDemand,
    DemandEvent,
    pods_on_machine,
    schedule,
)
from bigfleet_scaletest.run_options import PlannedRun, add_flags, options_of, plan_run

_SAMPLE_SECONDS: Final = 1.0
_CHURN_SECONDS: Final = 5.0


class LoadDriver:
    """The clusters of a run."""

    def __init__(self, run: PlannedRun, shards: dict[str, str]) -> None:
        self._run = run
        self._rng = Random(f"load-{run.options.seed}")
        self._dials = {name: GrpcDial(address) for name, address in shards.items()}
        names = list(shards)
        interval = run.setting("rollupIntervalSeconds")
        behaviour = replace(
            Behaviour(rollup_seconds=interval, evict_seconds=Span(0.5, 3.0)),
            never_ready_rate=run.profile.provider.never_ready_ratio,
        )
        self.demand: list[ClusterDemand] = []
        self.shard_of: list[str] = []
        operators = []
        planned = [
            [each for each in run.fleet.objects if each.cluster == number]
            for number in range(run.fleet.clusters)
        ]
        for number, objects in enumerate(planned):
            own = Random(self._rng.getrandbits(64))
            demand = ClusterDemand(objects, run.profile, own)
            self.demand.append(demand)
            self.shard_of.append(names[number % len(names)])
            cluster = SimCluster(
                f"scale-{number:04d}", demand.workload, WallClock(), own, behaviour, Stats()
            )
            operators.append(SimOperator(cluster, self._dials[self.shard_of[-1]], own))
        self.fleet = SimFleet(operators, Stats(), self._rng)
        self._operators = operators
        self._soak: asyncio.Task[None] | None = None
        self._spread = interval

    async def run(self, samples: TextIO) -> None:
        """Everything, until orders end."""
        tasks = [
            asyncio.create_task(self.fleet.run(self._spread)),
            asyncio.create_task(self._sample(samples)),
        ]
        try:
            await obey_until_told(self.obey)
        finally:
            tasks += [self._soak] if self._soak is not None else []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for dial in self._dials.values():
                await dial.close()

    async def obey(self, order: Order) -> None:
        """One order."""
        if text(order, "do") != "soak":
            raise ValueError(f"{order['do']!r} is not an order for the load driver: use soak")
        if self._soak is None:
            self._soak = asyncio.create_task(self._run_soak())

    async def _run_soak(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._churn())
            loop = asyncio.get_running_loop()
            began = loop.time()
            for event in schedule(self._run.profile, self._run.fleet.effective):
                await asyncio.sleep(max(0.0, began + event.at_seconds - loop.time()))
                self.apply(event)

    def apply(self, event: DemandEvent) -> None:
        """One change of demand."""
        if event.kind == "target":
            for demand in self.demand:
                demand.set_multiplier(event.amount)
            return
        kind = archetype(self._run.profile.catalogue, event.archetype)
        name = f"scaletest/{event.kind.removesuffix('-end')}-{event.archetype}"
        if event.kind == "burst-end":
            for demand in self.demand:
                demand.drop(name)
        elif event.kind == "burst":
            for demand in self.demand:
                if demand.takes_part(event.selectivity):
                    demand.add(name, kind, round(event.amount))
        else:
            self._probe(name, round(event.amount))

    def _probe(self, name: str, machines: int) -> None:
        """So many machines' worth of pods, a whole machine at a time, from cluster to cluster."""
        kind = archetype(self._run.profile.catalogue, name.rpartition("probe-")[2])
        for number, demand in enumerate(self.demand):
            count = machines // len(self.demand) + (number < machines % len(self.demand))
            demand.add(name, kind, count * pods_on_machine(kind))

    async def _churn(self) -> None:
        per_pod = self._run.profile.load.churn_per_minute * _CHURN_SECONDS / 60
        due = [self._rng.random() for _ in self._operators]
        while True:
            await asyncio.sleep(_CHURN_SECONDS)
            for number, operator in enumerate(self._operators):
                due[number] += per_pod * operator.cluster.workload.pods()
                whole, due[number] = int(due[number]), due[number] % 1
                if whole:
                    operator.cluster.delete_pods(whole)

    async def _sample(self, samples: TextIO) -> None:
        while True:
            samples.write(json.dumps(self.sample()) + "\n")
            samples.flush()
            await asyncio.sleep(_SAMPLE_SECONDS)

    def sample(self) -> dict[str, Any]:
        """How all clusters are at this moment; latencies since the last sample."""
        clusters = [operator.cluster for operator in self._operators]
        stats = [cluster.stats for cluster in clusters]
        sessions = dict.fromkeys(self._dials, 0)
        for shard, operator in zip(self.shard_of, self._operators, strict=True):
            sessions[shard] += operator.connected
        found = {
            "t": time.time(),
            "sessions": sessions,
            "clusters": len(clusters),
            "target": sum(demand.target for demand in self.demand),
            "active": sum(c.workload.pods() for c in clusters if c.stats.rollups_acknowledged),
            "bound": sum(cluster.placing.running_pods() for cluster in clusters),
            "waiting": sum(cluster.placing.waiting_pods() for cluster in clusters),
            "nodes": sum(node.ready for cluster in clusters for node in cluster.nodes),
            "reclaims": sum(each.reclaims for each in stats),
            "rejected": sum(each.rollups_rejected for each in stats),
            "dropped": sum(each.answers_dropped for each in stats),
            "ack_s": [value for each in stats for value in each.latencies],
            "rollup_s": [value for each in stats for value in each.rollup_seconds],
        }
        for each in stats:
            each.latencies.clear()
            each.rollup_seconds.clear()
        return found


async def _serve(run: PlannedRun, shards: dict[str, str], samples: Path) -> None:
    with samples.open("a", encoding="utf-8") as sink:
        await LoadDriver(run, shards).run(sink)


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser(prog="bigfleet-scaletest-load", allow_abbrev=False)
    add_flags(parser)
    parser.add_argument("--shard", action="append", required=True, metavar="NAME=ADDRESS")
    parser.add_argument("--samples", type=Path, required=True)
    given = parser.parse_args()
    configure_logs()
    shards = dict(pair.split("=", 1) for pair in given.shard)
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(partial(_serve, plan_run(options_of(given)), shards, given.samples)())


if __name__ == "__main__":
    main()
