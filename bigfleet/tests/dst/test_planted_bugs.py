"""The simulation finds bugs: the real shard and the model provider, each with one planted.

Plans are written here instead of drawn, so that each shows its bug within a few virtual minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bigfleet.decision import Policy
from bigfleet.model import CapacityType
from bigfleet.provider import Ack, ProviderClient, ProviderSite
from bigfleet.shard.decide.inputs import CycleInputs
from bigfleet.shard.server.shard import Count, Shard
from bigfleet.wire.fencing import FencingStamps
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.demand_changes import Change, Step
from bigfleet_lab.simcluster.generator import Mix
from sim.drawing import ClusterPlan, Plan, ProviderPlan
from sim.faults import Fault, FaultKind
from sim.process import Process
from sim.provider import ModelProvider, Request
from sim.run import Result, run_plan
from sim.shards import Life, build
from sim.slots import WAYS, Kind, Offer, S
from sim.world import Build, Mounted, World

OFFER = Offer("m.large", "z-a", "r-1", CapacityType.RESERVED, 0.1, 0.0, 4, 16)
MIX = Mix(cpus=(1_000,), gibibytes_per_cpu=(2,), replicas=(8, 8), gangs=0.0, spread=0.0)


def plan_of(*faults: Fault, clusters: int = 2, machines: int = 20, steps: Any = ()) -> Plan:
    return Plan(
        seed=1,
        severity="written",
        seconds=240.0,
        providers=(ProviderPlan("p1", tuple(replace(OFFER) for _ in range(machines))),),
        clusters=tuple(
            ClusterPlan(f"c{n:02d}", n + 1, 4, MIX, 1.0, Behaviour(), 0.0, steps)
            for n in range(clusters)
        ),
        faults=faults,
    )


def fault(kind: FaultKind, at: float, seconds: float = 60.0, target: str = "") -> Fault:
    return Fault(kind, at, seconds, target, 0.5)


def broken(result: Result) -> str:
    """The name of the invariant that broke."""
    assert not result.ok
    return result.failure.split()[1].removesuffix(":")


def with_life(kind: type[Life]) -> Build:
    def make(world: World, process: Process, disk: Mounted) -> Life:
        return kind(world, process, disk)

    return make


def with_provider(kind: type[ModelProvider]) -> Build:
    """The real shard, and providers of another kind in the place of the model's."""

    def make(world: World, process: Process, disk: Mounted) -> Life:
        for provider in world.providers.values():
            provider.__class__ = kind
        return build(world, process, disk)

    return make


def test_without_a_bug_nothing_is_found() -> None:
    crash = fault(FaultKind.SHARD_CRASH_AT_COMMIT, 5.0)
    cut = fault(FaultKind.CUT_CLUSTER, 60.0, 120.0, "c00")
    result = run_plan(plan_of(crash, cut), build)
    assert result.ok, result.report()


# -- a shard that takes silence for no demand ---------------------------------------------------


class _DeafInputs(CycleInputs):
    def _facts(self, backed_off: frozenset[str]) -> Any:
        facts = super()._facts(backed_off)
        return {cluster: replace(fact, reported=True) for cluster, fact in facts.items()}


class ReclaimsOnSilence(Life):
    """Counts every cluster as having reported."""

    def _watch(self, shard: Shard) -> None:
        super()._watch(shard)
        shard._inputs.__class__ = _DeafInputs


def test_a_shard_that_reclaims_from_a_silent_cluster_is_caught() -> None:
    # The cluster cannot reach the shard when that comes back without any memory of it.
    faults = (
        fault(FaultKind.CUT_CLUSTER, 60.0, 170.0, "c00"),
        fault(FaultKind.SHARD_LOSES_DISK, 70.0),
    )
    assert run_plan(plan_of(*faults), build).ok
    assert broken(run_plan(plan_of(*faults), with_life(ReclaimsOnSilence))) == "S5"


# -- a shard without its rails ------------------------------------------------------------------


class _HastyInputs(CycleInputs):
    def policy(self) -> Policy:
        return replace(super().policy(), reclaim_budget=dict.fromkeys(self.needs.clusters(), 99))


class IgnoresTheCap(Life):
    """Lets every reclaim through."""

    def _watch(self, shard: Shard) -> None:
        super()._watch(shard)
        shard._inputs.__class__ = _HastyInputs


def test_a_shard_that_reclaims_faster_than_its_cap_is_caught() -> None:
    shrink = (Step(60.0, Change.STEP, 0.2),)
    assert run_plan(plan_of(steps=shrink), build).ok
    assert broken(run_plan(plan_of(steps=shrink), with_life(IgnoresTheCap))) == "S6"


# -- a shard that sends what was meant for another party ----------------------------------------


class _MixesBlobsUp(ProviderClient):
    async def configure(
        self,
        machine_id: str,
        cluster_id: str,
        blob: bytes,
        metadata: Mapping[str, str],
        *,
        seconds: float = 30.0,
    ) -> Ack:
        return await super().configure(
            machine_id, cluster_id, blob + b"0", metadata, seconds=seconds
        )


class WrongBlobs(Life):
    """Hands a machine bootstrap data that its cluster did not make for it."""

    def _connect(self, site: ProviderSite, stamps: FencingStamps, count: Count) -> ProviderClient:
        client = super()._connect(site, stamps, count)
        client.__class__ = _MixesBlobsUp
        return client


def test_a_shard_that_mixes_bootstrap_data_up_is_caught() -> None:
    assert broken(run_plan(plan_of(), with_life(WrongBlobs))) == "S13"


# -- a shard that forgets its epoch -------------------------------------------------------------


class ForgetsItsEpoch(Life):
    """Begins every life with the same epoch."""

    def _tuning(self) -> Any:
        return replace(super()._tuning(), epoch=7)


class Unfenced(ModelProvider):
    """Takes any token."""

    def mutate(self, kind: Kind, request: Request) -> Any:
        self._marks.clear()
        return super().mutate(kind, request)


def test_an_old_token_that_takes_effect_is_caught() -> None:
    def make(world: World, process: Process, disk: Mounted) -> Life:
        for provider in world.providers.values():
            provider.__class__ = Unfenced
        return ForgetsItsEpoch(world, process, disk)

    crash = fault(FaultKind.SHARD_LOSES_DISK, 60.0)
    shrink_and_grow = (Step(90.0, Change.STEP, 0.2), Step(200.0, Change.STEP, 5.0))
    plan = plan_of(crash, steps=shrink_and_grow)
    assert broken(run_plan(plan, make)) == "S4"


# -- providers ----------------------------------------------------------------------------------


class LosesDrains(ModelProvider):
    """Says that a drained machine is Idle and leaves it in its cluster."""

    def _finish(self, slot: Any, number: int, kind: Kind, error: str) -> None:
        cluster = slot.cluster
        super()._finish(slot, number, kind, error)
        if kind is Kind.DRAIN and slot.state is WAYS[kind].end:
            slot.cluster = cluster


def test_a_machine_that_is_bound_twice_is_caught() -> None:
    swap = (Step(60.0, Change.STEP, 0.2), Step(150.0, Change.STEP, 5.0))
    assert broken(run_plan(plan_of(steps=swap), with_provider(LosesDrains))) == "S1"


class NeverSaysReady(ModelProvider):
    """Goes on saying Configuring when a machine is Configured."""

    def listing(self, request: Any) -> Any:
        answer = super().listing(request)
        for record in answer.machines:
            if record.state == int(S.CONFIGURED):
                record.state = pb.MACHINE_STATE_CONFIGURING
        return answer


def test_a_fleet_that_does_not_come_to_agree_with_its_provider_is_caught() -> None:
    assert broken(run_plan(plan_of(), with_provider(NeverSaysReady))) == "L2"
