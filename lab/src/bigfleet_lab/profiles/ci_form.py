"""Shorter and smaller forms of a profile, each under a name of its own.

The CI form divides the soak, the settle time and all offsets and lengths of demand and actions by
four. Windows of actions, latencies and limits stay; the soak grows again where the samples of the
last action would not fit, or a p99 would have too few cycles. A scale factor shrinks machines,
clusters and absolute counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bigfleet_lab.profiles.actions import kind_of
from bigfleet_lab.profiles.model import DeliveryProbe, LoadProfile, RunnerAction, ScaleProfile

DIVISOR: Final = 4.0
_AFTER_LAST_SAMPLE: Final = 10.0
_LEAST_WINDOW: Final = 220.0
"""A p99 needs 20 cycles of 10 s."""
_PROBE_AFTER_SETTLE: Final = 60.0


def ci_form(profile: ScaleProfile) -> ScaleProfile:
    """The form that gates changes, named `PROFILE@ci`."""
    actions = tuple(replace(each, at_seconds=each.at_seconds / DIVISOR) for each in profile.actions)
    load = _shorter(profile.load)
    needed = max((_samples_end(each) for each in actions), default=0.0)
    soak = max(load.soak_seconds, needed + _AFTER_LAST_SAMPLE if actions else 0.0)
    soak = max(soak, load.settle_seconds + _LEAST_WINDOW)
    return replace(
        profile,
        name=f"{profile.name}@ci",
        load=replace(load, soak_seconds=soak),
        actions=actions,
    )


def _samples_end(action: RunnerAction) -> float:
    found = kind_of(action.action)
    assert found is not None
    return action.at_seconds + action.duration_seconds + found[0].samples_seconds


def _shorter(load: LoadProfile) -> LoadProfile:
    probe = load.delivery_probe
    at = load.settle_seconds + _PROBE_AFTER_SETTLE if probe.at_seconds is None else probe.at_seconds
    return replace(
        load,
        soak_seconds=load.soak_seconds / DIVISOR,
        settle_seconds=load.settle_seconds / DIVISOR,
        bursts=tuple(
            replace(
                each,
                at_seconds=each.at_seconds / DIVISOR,
                duration_seconds=each.duration_seconds / DIVISOR,
            )
            for each in load.bursts
        ),
        scale_downs=tuple(
            replace(each, at_seconds=each.at_seconds / DIVISOR) for each in load.scale_downs
        ),
        demand_steps=tuple(
            replace(each, at_seconds=each.at_seconds / DIVISOR) for each in load.demand_steps
        ),
        delivery_probe=DeliveryProbe(probe.machines, probe.archetype, at / DIVISOR),
    )


def scaled(profile: ScaleProfile, factor: float) -> ScaleProfile:
    """A smaller form, named `PROFILE@FACTOR`; shards and replicas stay."""
    if factor == 1.0:
        return profile
    topology, seed = profile.topology, profile.seed
    clusters = None if topology.clusters is None else max(1, round(topology.clusters * factor))
    return replace(
        profile,
        name=f"{profile.name}@{factor:g}",
        machines=max(1, round(profile.machines * factor)),
        topology=replace(topology, clusters=clusters, shard_replicas=profile.shards),
        seed=replace(
            seed,
            speculative_count=round(seed.speculative_count * factor),
            spot_count=round(seed.spot_count * factor),
        ),
    )
