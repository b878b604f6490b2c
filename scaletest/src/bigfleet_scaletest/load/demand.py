"""Planned objects as the workloads of simulated clusters, and the changes a profile schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    bucket_of,
)
from bigfleet_lab.profiles.archetypes import CATALOGUES, GPU, Archetype, PodRequest, archetype
from bigfleet_lab.profiles.fleet_plan import PlannedObject
from bigfleet_lab.profiles.model import ScaleProfile
from bigfleet_lab.simcluster import Workload, WorkObject

_GI: Final = 1024**3 * 1000
_PROBE_AFTER_SETTLE: Final = 60.0
_PROBE_LEAST: Final = 30
_PROBE_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class DemandEvent:
    """What happens to demand at a moment of the soak."""

    at_seconds: float
    kind: str
    """target, burst, burst-end or probe."""
    archetype: str = ""
    amount: float = 0.0
    """The multiplier, pods per cluster, or machines."""
    selectivity: float = 1.0


def work_object(planned: PlannedObject) -> WorkObject:
    """As the simulated cluster has it."""
    kind = planned.archetype
    requirements = [Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.IN, planned.types)]
    group = ""
    if kind.gang:
        requirements.append(Requirement.of(kind.gang_key, RequirementOperator.SAME))
        group = f"{kind.gang_key}|{planned.name}"
    elif planned.zones:
        requirements.append(Requirement.of(LABEL_ZONE, RequirementOperator.IN, planned.zones))
    profile = Profile.of(
        tuple(requirements),
        _spread(planned),
        kind.priority,
        bucket_of(kind.interruption_dollars),
        bucket_of(kind.reclamation_dollars),
    )
    return WorkObject(planned.name, profile, milli_units(planned.request), group)


def milli_units(request: PodRequest) -> dict[str, int]:
    """A request as amounts are written."""
    amounts = {"cpu": round(request.cpus * 1000), "memory": round(request.gibibytes * _GI)}
    return {**amounts, GPU: request.gpus * 1000} if request.gpus else amounts


def _spread(planned: PlannedObject) -> tuple[Spread, ...]:
    law = planned.archetype.spread
    # An object that names one zone cannot spread over several.
    if law is None or not planned.spread or planned.zones or planned.archetype.gang:
        return ()
    mode = SpreadMode.DO_NOT_SCHEDULE if law.hard else SpreadMode.SCHEDULE_ANYWAY
    return (Spread(LABEL_ZONE, law.max_skew, mode),)


def probe_archetype(profile: ScaleProfile) -> Archetype:
    """The archetype of the delivery probe: the heaviest one of class service that is not a gang."""
    wanted = profile.load.delivery_probe.archetype
    if wanted is not None:
        return archetype(profile.catalogue, wanted)
    plain = [each for each in CATALOGUES[profile.catalogue] if each.weight and not each.gang]
    services = [each for each in plain if each.priority_class == "service"] or plain
    return max(services, key=lambda each: each.weight)


def pods_on_machine(kind: Archetype) -> int:
    """Pods of its first request that fill a machine of its first type."""
    return replace(kind, requests=kind.requests[:1]).pods_per_machine


def probe_machines(profile: ScaleProfile, effective: int) -> int:
    """Machines that the probe adds."""
    given = profile.load.delivery_probe.machines
    # A p99 is the worst shard's, so every shard needs its samples.
    least = _PROBE_LEAST * profile.shards
    return max(least, round(_PROBE_SHARE * effective)) if given is None else given


def schedule(profile: ScaleProfile, effective: int) -> list[DemandEvent]:
    """Everything that happens to demand during the soak, in order."""
    return sorted(_events(profile, effective), key=lambda event: event.at_seconds)


def _events(profile: ScaleProfile, effective: int) -> Iterator[DemandEvent]:
    load = profile.load
    for target in (*load.scale_downs, *load.demand_steps):
        yield DemandEvent(target.at_seconds, "target", amount=target.target_multiplier)
    for burst in load.bursts:
        one = (burst.archetype, float(burst.extra_target), burst.selectivity)
        yield DemandEvent(burst.at_seconds, "burst", *one)
        if burst.duration_seconds:
            yield DemandEvent(burst.at_seconds + burst.duration_seconds, "burst-end", *one)
    machines = probe_machines(profile, effective)
    if machines:
        at = load.delivery_probe.at_seconds
        moment = load.settle_seconds + _PROBE_AFTER_SETTLE if at is None else at
        yield DemandEvent(moment, "probe", probe_archetype(profile).name, float(machines))


class ClusterDemand:
    """The demand of one cluster: the plan, times a multiplier, and what came on top."""

    def __init__(self, planned: list[PlannedObject], profile: ScaleProfile, rng: Random) -> None:
        self.workload = Workload()
        self._plan = {each.name: each.replicas for each in planned}
        self._profile, self._rng = profile, rng
        self._extra: dict[str, int] = {}
        for each in planned:
            self.workload.add(work_object(each), each.replicas)
        self.target = self.workload.pods()

    def set_multiplier(self, multiplier: float) -> None:
        """This share of the plan exists from now on."""
        for name, replicas in self._plan.items():
            self.workload.scale(name, round(replicas * multiplier))
        self._retarget()

    def add(self, name: str, kind: Archetype, pods: int) -> None:
        """An object on top of the plan; of a gang archetype one whole gang."""
        replicas = kind.gang[0] if kind.gang else pods
        if name in self.workload or not replicas:
            return
        types = kind.types[:1]
        planned = PlannedObject(0, name, kind, kind.requests[0], replicas, types, (), spread=False)
        self.workload.add(work_object(planned), replicas)
        self._extra[name] = replicas
        self._retarget()

    def drop(self, name: str) -> None:
        """The object goes."""
        if self._extra.pop(name, None) is not None:
            self.workload.remove(name)
            self._retarget()

    def takes_part(self, selectivity: float) -> bool:
        """Whether a burst reaches this cluster."""
        return self._rng.random() < selectivity

    def _retarget(self) -> None:
        self.target = self.workload.pods()
