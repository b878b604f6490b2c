"""What the provider of one shard offers: machines by type, zone and rack, in the tiers of a seed.

`seed` and `idle` machines exist when a run begins; `free` and `spot` ones are made on request. The
seed is idle at first and bound by the shard itself, over the wire, while transitions take no time:
so every binding is one that the system made. Each rack is an offering of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bigfleet_lab.profiles.actions import shard_names
from bigfleet_lab.profiles.archetypes import (
    CPU_RACK,
    GPU,
    GPU_RACK,
    ON_DEMAND_PROBABILITY,
    RACK,
    SHAPES,
    ZONES,
    archetype,
)
from bigfleet_scaletest.run_options import PlannedRun

SHARD_DOMAIN: Final = "scaletest.bigfleet/shard"
"""The domain by which machines belong to shards; the runner assigns each to its shard."""
SEED_TIERS: Final = ("seed", "idle")
"""Pools whose machines exist from the start."""
_SEED_KINDS: Final = (("bare_metal", 0.40), ("reserved", 0.35), ("on_demand", 0.20), ("spot", 0.05))
_IDLE_KINDS: Final = (("bare_metal", 0.5), ("reserved", 0.5))
_DEV_GPU_RACK: Final = 8
_COST_ROUTING: Final = {"on_demand": 0.02, "spot": 0.30}
"""Interruption probabilities of the catalogue cost-routing."""
_SPOT_ARCHETYPES: Final = ("tiny-stateless", "cpu-batch")


def offerings(run: PlannedRun, shard: int) -> list[dict[str, Any]]:
    """The offerings of the provider of one shard."""
    made: list[dict[str, Any]] = []
    owner = shard_names(run.profile.shards)[shard]
    for tier, name, kind, count in _amounts(run, shard):
        for zone, in_zone in zip(ZONES, _split(count, [1 / 3] * 3), strict=True):
            for size in _racks(name, in_zone, run.profile.catalogue):
                rack = len(made)
                entry = _entry(run.profile.catalogue, name, kind, zone, size)
                labels = {RACK: f"rack-{rack}", SHARD_DOMAIN: owner}
                made.append({**entry, "pool": f"{tier}-{rack}", "labels": labels})
    return made


def total(run: PlannedRun, shard: int) -> int:
    """Records that the provider of a shard has."""
    return sum(entry["count"] for entry in offerings(run, shard))


def _amounts(run: PlannedRun, shard: int) -> Iterator[tuple[str, str, str, int]]:
    """Tier, instance type, capacity type and count."""
    seed, shards = run.profile.seed, run.profile.shards
    wanted: dict[str, float] = {}
    bound: dict[str, float] = {}
    spot_able: dict[str, float] = {}
    for name, machines in run.fleet.machines.items():
        kind = archetype(run.profile.catalogue, name)
        share = seed.configured_by_class.get(kind.priority_class, seed.configured_fraction)
        first = kind.types[0]
        wanted[first] = wanted.get(first, 0) + machines
        bound[first] = bound.get(first, 0) + machines * share
        if name in _SPOT_ARCHETYPES:
            spot_able[first] = spot_able.get(first, 0) + machines * share
    effective = sum(wanted.values())
    for name, needed in wanted.items():
        yield from _seeded("seed", name, _share(bound[name], shards, shard), name in spot_able)
        idle = needed * seed.idle_headroom_fraction
        yield from _seeded("idle", name, _share(idle, shards, shard), spot=False)
        free: float = seed.speculative_multiplier * needed / shards
        free += seed.speculative_count * needed / effective
        yield "free", name, "on_demand", round(free)
        if not SHAPES[name].gpus:
            yield "spot", name, "spot", round(seed.spot_count * needed / effective)
    yield from _bursts(run)


def _seeded(tier: str, name: str, count: int, spot: bool) -> Iterator[tuple[str, str, str, int]]:
    kinds: tuple[tuple[str, float], ...] = _IDLE_KINDS if tier == "idle" else _SEED_KINDS
    if not spot:
        kinds = tuple(each for each in kinds if each[0] != "spot")
    whole = sum(share for _, share in kinds)
    for (kind, _), amount in zip(
        kinds, _split(count, [share / whole for _, share in kinds]), strict=True
    ):
        yield tier, name, kind, amount


def _bursts(run: PlannedRun) -> Iterator[tuple[str, str, str, int]]:
    """Room for every burst: the clusters it reaches, times what it asks for in each."""
    for burst in run.profile.load.bursts:
        kind = archetype(run.profile.catalogue, burst.archetype)
        pods = kind.gang[1] if kind.gang else 0
        reached = run.fleet.clusters * burst.selectivity / run.profile.shards
        if pods:
            yield "free", kind.types[0], "on_demand", round(reached * pods)


def _entry(catalogue: str, name: str, kind: str, zone: str, count: int) -> dict[str, Any]:
    shape = SHAPES[name]
    offered = shape.allocatable
    resources = {"cpu": str(shape.vcpus), "memory": f"{shape.gibibytes}Gi"}
    usable = {
        "cpu": f"{round(offered['cpu'] * 1000)}m",
        "memory": f"{round(offered['memory'] * 1024)}Mi",
    }
    if shape.gpus:
        resources[GPU] = usable[GPU] = str(shape.gpus)
    prices = {
        "bare_metal": 0.0,
        "reserved": shape.reserved,
        "on_demand": shape.on_demand,
        "spot": shape.spot,
    }
    risks = {"on_demand": ON_DEMAND_PROBABILITY, "spot": shape.spot_probability}
    if catalogue == "cost-routing":
        risks = _COST_ROUTING
    return {
        "instance_type": name, "zone": zone, "capacity_type": kind, "count": count,
        "resources": resources, "allocatable": usable,
        "price_usd_per_hour": prices[kind],
        "interruption_probability": risks.get(kind, 0.0),
    }  # fmt: skip


def _racks(name: str, count: int, catalogue: str) -> Iterator[int]:
    gpu = _DEV_GPU_RACK if catalogue == "realistic-dev" else GPU_RACK
    size = gpu if SHAPES[name].gpus else CPU_RACK
    while count > 0:
        yield min(size, count)
        count -= size


def _share(amount: float, shards: int, shard: int) -> int:
    return _split(round(amount), [1 / shards] * shards)[shard]


def _split(count: int, shares: list[float]) -> list[int]:
    """Whole numbers by the largest remainder; the first ones win ties."""
    exact = [count * share for share in shares]
    found = [int(each + 1e-9) for each in exact]
    rest = sorted(range(len(shares)), key=lambda at: found[at] - exact[at])
    for at in rest[: count - sum(found)]:
        found[at] += 1
    return found
