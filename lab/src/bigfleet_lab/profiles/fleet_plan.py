"""What a profile amounts to: pods, objects of every cluster, machines of every shape, and memory.

Everything is drawn from one seed. Pods are divided over archetypes by weight and mean size, so that
the mix is the catalogue's at every size; objects get their size by law and go to the cluster that
lacks most of its share. Machines follow from the pods of an archetype and what fits on a machine,
and are at least enough for the largest atomic gang in every zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from bigfleet_lab.profiles.archetypes import CATALOGUES, ZONES, Archetype, PodRequest
from bigfleet_lab.profiles.model import ScaleProfile
from bigfleet_lab.profiles.substrate import SubstrateSpec

_SIZE_LAW: Final = ((0.55, 1, 5), (0.85, 6, 25), (0.97, 26, 100), (1.0, 101, 400))
"""Share of the objects up to which, and least and most replicas."""
_STATEFUL_MOST: Final = 25
_ONE_ZONE: Final = 0.3
_LARGEST_CLUSTER: Final = 10.0


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """An object of one cluster."""

    cluster: int
    name: str
    archetype: Archetype
    request: PodRequest
    replicas: int
    types: tuple[str, ...]
    zones: tuple[str, ...]
    spread: bool


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A profile in objects and machines."""

    clusters: int
    objects: tuple[PlannedObject, ...]
    machines: dict[str, int]
    """Effective machines by archetype."""

    @property
    def pods(self) -> int:
        """All of them."""
        return sum(each.replicas for each in self.objects)

    @property
    def effective(self) -> int:
        """All machines that demand needs by the sizing rules."""
        return sum(self.machines.values())


def natural_density(catalogue: str) -> float:
    """Pods per machine that a catalogue comes to."""
    shares = _shares(CATALOGUES[catalogue])
    machines = sum(share / each.pods_per_machine for each, share in shares.items())
    return sum(shares.values()) / machines


def nominal_pods(profile: ScaleProfile) -> int:
    """Machines times density."""
    density = profile.density or natural_density(profile.catalogue)
    return max(1, round(profile.machines * density))


def cluster_count(profile: ScaleProfile, substrate: SubstrateSpec) -> int:
    """Clusters of a run."""
    return profile.topology.clusters or max(
        1, -(-nominal_pods(profile) // substrate.pods_per_cluster)
    )


def plan_fleet(profile: ScaleProfile, clusters: int, seed: int) -> FleetPlan:
    """The objects and machines of a run; the same for the same seed."""
    rng = Random(f"fleet-{seed}")
    archetypes = CATALOGUES[profile.catalogue]
    pods = _divide(nominal_pods(profile), _shares(archetypes))
    room = _cluster_shares(profile.topology.cluster_sizes, clusters, rng)
    left = [share * sum(pods.values()) for share in room]
    objects: list[PlannedObject] = []
    for each, count in pods.items():
        for replicas in _sizes(each, count, rng):
            cluster = max(range(clusters), key=left.__getitem__)
            left[cluster] -= replicas
            objects.append(_object(each, cluster, len(objects), replicas, rng))
    return FleetPlan(clusters, tuple(objects), _machines(objects))


def machines_for(archetype: Archetype, pods: int) -> int:
    """Machines that so many pods need."""
    return -(-pods // archetype.pods_per_machine)


def _machines(objects: Sequence[PlannedObject]) -> dict[str, int]:
    pods: dict[str, int] = {}
    kinds: dict[str, Archetype] = {}
    for each in objects:
        kinds[each.archetype.name] = each.archetype
        pods[each.archetype.name] = pods.get(each.archetype.name, 0) + each.replicas
    found = {}
    for name, kind in kinds.items():
        floor = kind.gang[1] * len(ZONES) if kind.atomic and kind.gang else 0
        found[name] = max(machines_for(kind, pods[name]), machines_for(kind, floor))
    return found


def _shares(archetypes: Sequence[Archetype]) -> dict[Archetype, float]:
    return {each: each.weight * each.mean_replicas for each in archetypes if each.weight}


def _divide(total: int, shares: dict[Archetype, float]) -> dict[Archetype, int]:
    """Whole pods by the largest remainder."""
    whole = sum(shares.values())
    exact = {each: total * share / whole for each, share in shares.items()}
    found = {each: int(amount) for each, amount in exact.items()}
    rest = sorted(exact, key=lambda each: found[each] - exact[each])
    for each in rest[: total - sum(found.values())]:
        found[each] += 1
    return found


def _cluster_shares(law: str, clusters: int, rng: Random) -> list[float]:
    name, _, sigma = law.partition(":")
    if name == "uniform":
        return [1 / clusters] * clusters
    drawn = [rng.lognormvariate(0.0, float(sigma)) for _ in range(clusters)]
    most = _LARGEST_CLUSTER * sum(drawn) / clusters
    drawn = [min(each, most) for each in drawn]
    return [each / sum(drawn) for each in drawn]


def _sizes(archetype: Archetype, pods: int, rng: Random) -> list[int]:
    found: list[int] = []
    while pods > 0:
        low, high = archetype.gang or _law(rng)
        size = rng.randint(low, high)
        if archetype.stateful:
            size = min(size, _STATEFUL_MOST)
        if archetype.gang and pods < low:
            # Too few for a gang; the first one of a small fleet is made all the same.
            if not found:
                found.append(low)
            break
        size = min(size, pods)
        found.append(size)
        pods -= size
    return found


def _law(rng: Random) -> tuple[int, int]:
    draw = rng.random()
    return next((low, high) for share, low, high in _SIZE_LAW if draw <= share)


def _object(
    archetype: Archetype, cluster: int, number: int, replicas: int, rng: Random
) -> PlannedObject:
    weights = [each.share for each in archetype.requests]
    one_zone = rng.random() < _ONE_ZONE
    more_types = rng.random() < 0.5
    return PlannedObject(
        cluster=cluster,
        name=f"scaletest/{archetype.name}-{number:06d}",
        archetype=archetype,
        request=rng.choices(archetype.requests, weights)[0],
        replicas=replicas,
        types=archetype.types if more_types else archetype.types[:1],
        zones=(rng.choice(ZONES),) if one_zone else (),
        spread=archetype.spread is not None and rng.random() < archetype.spread.share,
    )
