"""A shard that is killed at any moment loses nothing, doubles nothing, and harms no other.

Six kills with every change, sixty in `make test-deep`. Demand moves up to the moment of the kill.
After each: no machine leaves its cluster before that cluster has spoken; within two cycles of
everybody having spoken all that can be decided is decided; provider, shard and clusters agree.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from bigfleet_lab.simcluster.behaviour import Behaviour, Span
from bigfleet_lab.simcluster.fleet import SimFleet
from bigfleet_lab.simcluster.generator import Mix
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import WallClock
from sizes import many
from whole.processes import ShardProcess, processes, provided

pytestmark = pytest.mark.deep

MACHINES = 60
CLUSTERS = 4
ROWS = 4
TICK = 2.0
FLAGS = (
    "--cycle-interval", f"{TICK}s", "--min-cycle-gap", "50ms", "--reclaim-hold", "3s",
    "--reclaim-cap", "1", "--reclaim-window", "1s", "--on-demand-release-hold", "5s",
    "--spot-release-hold", "3s",
)  # fmt: skip
BEHAVIOUR = Behaviour(rollup_seconds=1.0, prompt_seconds=0.1, evict_seconds=Span(0.05, 0.3))
TAKES_AWAY = ("Reclaim", "Preempt")


class Fleet:
    """The clusters, and how their demand moves."""

    def __init__(self, fleet: SimFleet, rng: Random) -> None:
        self._fleet = fleet
        self._rng = rng

    def move(self) -> None:
        """Every row of every cluster may change."""
        for operator in self._fleet:
            workload = operator.cluster.workload
            for name in workload.names:
                if self._rng.random() < 0.6:
                    workload.scale(name, self._rng.randint(1, 6))

    def silence(self) -> None:
        """They stay connected and say nothing."""
        for operator in self._fleet:
            operator.cluster.faults.silent = True

    def speak(self) -> None:
        """They say again what they want."""
        for operator in self._fleet:
            operator.cluster.faults.heal()
            if operator.session is not None:
                operator.session.roll_up()

    @property
    def connected(self) -> bool:
        """Whether all have a session."""
        return self._fleet.connected == CLUSTERS

    def nodes(self) -> dict[str, list[str]]:
        """Machine -> the clusters that have a Ready node of it."""
        found: dict[str, list[str]] = {}
        for operator in self._fleet:
            for node in operator.cluster.nodes:
                if node.exists and node.ready:
                    found.setdefault(node.machine_id, []).append(operator.cluster.id)
        return found


@contextlib.asynccontextmanager
async def clusters(address: str, rng: Random) -> AsyncIterator[Fleet]:
    dial = GrpcDial(address)
    mix = Mix(cpus=(1_000, 2_000), replicas=(1, 6), priorities=(100,), gangs=0.0, spread=0.0)
    fleet = SimFleet.make(
        dial, WallClock(), rng, clusters=CLUSTERS, rows=ROWS, behaviour=BEHAVIOUR, mix=mix
    )
    running = asyncio.create_task(fleet.run(0.5))
    try:
        yield Fleet(fleet, rng)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await dial.close()


async def settled(shard: ShardProcess) -> None:
    """All is decided two cycles after everybody has spoken, and nothing is left soon after."""
    spoken = await shard.until(
        "demand of all clusters",
        lambda: next((c for c in shard.cycles() if c["needs"] == CLUSTERS * ROWS), None),
    )
    since = spoken["cycle"]
    await shard.until("two more cycles", lambda: len(shard.cycles(since)) > 2)
    unmet = [cycle["shortfalls"] for cycle in shard.cycles(since)]
    assert unmet[2] == 0, f"rows without a decision, cycle by cycle: {unmet}"
    await shard.until("two quiet intervals", lambda: is_quiet(shard), 40.0)


def is_quiet(shard: ShardProcess) -> bool:
    """For two intervals nothing was done; releases of what no need wants apart."""
    cycles = shard.cycles()
    first = cycles[-1]["start_unix_nanos"] - 2 * TICK * 1e9
    recent = [c for c in cycles if c["start_unix_nanos"] >= first]
    was_there = cycles[0]["start_unix_nanos"] < first
    return was_there and not any(set(c["actions"]) - {"Delete"} for c in recent)


async def agreed(shard: ShardProcess, fleet: Fleet) -> None:
    """Provider, shard and clusters say the same of every machine."""

    async def differences() -> list[str]:
        truth, known, nodes = await provided(shard.provider), await shard.machines(), fleet.nodes()
        assert len(truth) == MACHINES
        found = [f"{m}: {truth[m]}, the shard says {known.get(m)}" for m in truth
                 if truth[m] != known.get(m)]  # fmt: skip
        found += [f"{m} is a node of {whose}" for m, whose in nodes.items() if len(whose) > 1]
        for machine, (state, cluster) in truth.items():
            bound = [cluster] if state == "CONFIGURED" else []
            if nodes.get(machine, []) != bound:
                found.append(f"{machine} is {state} {cluster}, a node of {nodes.get(machine)}")
        return found

    latest = asyncio.get_running_loop().time() + 20.0
    while left := await differences():
        assert asyncio.get_running_loop().time() < latest, left
        await asyncio.sleep(0.2)


@pytest.mark.timeout(2400)
async def test_a_shard_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    rng = Random("kill -9")
    with processes(tmp_path, MACHINES, *FLAGS) as shard:
        shard.start()
        async with clusters(shard.address, rng) as fleet:
            await settled(shard)
            await agreed(shard, fleet)
            for _ in range(many(6, 60, 1)):
                fleet.move()
                await asyncio.sleep(rng.choice((0.05, 0.3, 1.0, 4.0)) * rng.random())
                assert shard.metric("reclaims_unforced_total") == 0
                shard.kill()
                fleet.silence()
                bound = {
                    m for m, (_, cluster) in (await provided(shard.provider)).items() if cluster
                }
                shard.start()
                await shard.until("sessions of all clusters", lambda: fleet.connected, 90.0)
                await shard.until("two cycles without demand", lambda: len(shard.cycles()) >= 2)
                done = [set(c["actions"]) & {*TAKES_AWAY} for c in shard.cycles()]
                assert not any(done), f"before the first roll-up it did {done}"
                still = {
                    m for m, (_, cluster) in (await provided(shard.provider)).items() if cluster
                }
                assert bound <= still | await leaving(shard), "a machine left a silent cluster"
                fleet.speak()
                await settled(shard)
                await agreed(shard, fleet)
            assert shard.metric("reclaims_unforced_total") == 0


async def leaving(shard: ShardProcess) -> set[str]:
    """Machines whose Drain was on its way when the shard was killed."""
    return {
        m for m, (state, _) in (await provided(shard.provider)).items() if state != "CONFIGURED"
    }


@pytest.mark.timeout(240)
async def test_a_shard_that_is_told_to_stop_ends_in_order_within_five_seconds(
    tmp_path: Path,
) -> None:
    rng = Random("SIGTERM")
    with processes(tmp_path, MACHINES, *FLAGS) as shard:
        shard.start()
        async with clusters(shard.address, rng) as fleet:
            await settled(shard)
            fleet.move()
            code = await asyncio.to_thread(shard.terminate, 5.0)
            assert code == 0, shard.said()[-2000:]
            for words in ("signal received, shutting down", "shard stopped"):
                assert words in shard.said()
            shard.start()
            await settled(shard)
            await agreed(shard, fleet)
            assert shard.metric("reclaims_unforced_total") == 0
