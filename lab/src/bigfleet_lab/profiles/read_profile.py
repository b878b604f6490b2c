"""Profiles from files: every key, its type and its bounds, and what must fit together.

Wrong keys, impossible sizes and unknown actions are refused with the line and the remedy, so that
nothing has to be started to find them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

from bigfleet_lab.profiles.actions import kind_of, shard_names
from bigfleet_lab.profiles.archetypes import CATALOGUES, SHAPES, ZONES
from bigfleet_lab.profiles.document import FileFields, read_file
from bigfleet_lab.profiles.model import (
    DeliveryProbe,
    DemandBurst,
    DemandTarget,
    FleetTopology,
    LatencyModel,
    LoadProfile,
    ProviderBehaviour,
    RunnerAction,
    ScaleProfile,
    SeedTiers,
)
from bigfleet_lab.profiles.read_slo import read_slo

KIND: Final = "Profile"
CLASSES: Final = ("critical", "service", "batch", "other")
METHODS: Final = ("create", "configure", "drain", "delete", "get", "list")
OVERRIDES: Final = {
    "maxActionsPerCycle": 8192,
    "executeConcurrency": 256,
    "metricsWarmupCycles": 5,
    "rollupIntervalSeconds": 10,
    "cycleIntervalSeconds": 10,
}
"""Settings that the runner fixes, and their values."""
MOST_MACHINES: Final = 100_000_000
_CAPACITY_TYPES: Final = ("default", "on_demand", "spot", "reserved", "bare_metal")
_DEFAULT_SOAK: Final = 600.0


def read_profile(path: Path) -> ScaleProfile:
    """The profile in a file."""
    top = read_file(path, KIND)
    head = top.mapping("metadata", required=True)
    name, description = head.text("name"), head.text("description", "-")
    head.finish()
    if name != path.stem:
        raise head.error(f"metadata.name is {name!r}: the file's name says {path.stem!r}", "name")
    scale = top.mapping("scale", required=True)
    machines = _machines(scale)
    density = scale.optional_number("density", low=0.01, high=110)
    scale.finish()
    catalogue = _catalogue(top)
    load = _load(top.mapping("loadProfile", required=True), catalogue)
    topology = _topology(top)
    profile = ScaleProfile(
        name=name,
        description=description,
        machines=machines,
        density=density,
        catalogue=catalogue,
        seed=_seed(top.mapping("seed")),
        load=load,
        ramp_budget_seconds=top.duration("rampBudget"),
        actions=tuple(_action(each, load) for each in top.entries("runnerActions")),
        topology=topology,
        failure_rate_per_second=_failure_rate(top),
        provider=_provider(top.mapping("provider")),
        overrides=_overrides(top),
        slo=read_slo(top.mapping("slo")),
    )
    _check_actions(top, profile)
    top.finish()
    return profile


def _machines(scale: FileFields) -> int:
    if "machines" not in scale:
        raise scale.error("scale.machines is missing: it is required")
    machines = scale.whole("machines", low=1)
    if machines > MOST_MACHINES:
        raise scale.error(
            f"scale.machines is {machines:,}: at most {MOST_MACHINES:,} are designed for",
            "machines",
        )
    return machines


def _catalogue(top: FileFields) -> str:
    catalog = top.mapping("catalog")
    name = catalog.choice("archetypes", "realistic", CATALOGUES)
    catalog.finish()
    return name


def _failure_rate(top: FileFields) -> float:
    shard = top.mapping("shard")
    rate = shard.number("failureRatePerSec", 1.16e-7, low=0)
    shard.finish()
    return rate


def _seed(seed: FileFields) -> SeedTiers:
    by_class = seed.values("configuredByClass")
    for name, share in by_class.items():
        if name not in CLASSES or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise seed.error(
                f"seed.configuredByClass.{name} is {share!r}: give {', '.join(CLASSES)} "
                "shares from 0 to 1",
                "configuredByClass",
            )
    tiers = SeedTiers(
        configured_fraction=seed.number("configuredFraction", low=0, high=1),
        configured_by_class={name: float(share) for name, share in by_class.items()},
        idle_headroom_fraction=seed.number("idleHeadroomFraction", low=0),
        speculative_multiplier=seed.whole("speculativeMultiplier"),
        speculative_count=seed.whole("speculativeCount"),
        spot_count=seed.whole("spotCount"),
        pre_bind=seed.flag("preBind"),
    )
    if tiers.speculative_multiplier and tiers.speculative_count:
        raise seed.error(
            "seed.speculativeMultiplier and seed.speculativeCount exclude each other: keep one",
            "speculativeCount",
        )
    seed.finish()
    return tiers


def _load(load: FileFields, catalogue: str) -> LoadProfile:
    if "rampSeconds" not in load:
        raise load.error("loadProfile.rampSeconds is missing: it is required")
    soak = load.number("soakSeconds", low=0) or _DEFAULT_SOAK
    settle = load.number("settleSeconds", low=0)
    if settle >= soak:
        raise load.error(
            f"loadProfile.settleSeconds is {settle:g} and the soak {soak:g} s: settle for less",
            "settleSeconds",
        )
    steps = tuple(_target(each, 0.0) for each in load.entries("demandSteps"))
    if any(one.at_seconds >= two.at_seconds for one, two in pairwise(steps)):
        raise load.error("loadProfile.demandSteps: give atSeconds in rising order", "demandSteps")
    made = LoadProfile(
        ramp_seconds=load.number("rampSeconds", low=1),
        soak_seconds=soak,
        churn_per_minute=load.number("churnPerMinute", low=0),
        settle_seconds=settle,
        bursts=tuple(_burst(each, catalogue) for each in load.entries("bursts")),
        scale_downs=tuple(_target(each, 0.0, 0.999999) for each in load.entries("scaleDowns")),
        demand_steps=steps,
        delivery_probe=_probe(load.mapping("deliveryProbe"), catalogue),
        open_loop_multiplier=load.number("openLoopDemandMultiplier", 1.0, low=0),
    )
    load.finish()
    return made


def _target(fields: FileFields, low: float, high: float = 1e6) -> DemandTarget:
    if "targetMultiplier" not in fields:
        raise fields.error("targetMultiplier is missing: it is required")
    made = DemandTarget(
        fields.number("atSeconds", low=0), fields.number("targetMultiplier", low=low, high=high)
    )
    fields.finish()
    return made


def _burst(fields: FileFields, catalogue: str) -> DemandBurst:
    made = DemandBurst(
        at_seconds=fields.number("atSeconds", low=0),
        archetype=fields.choice("archetype", "", _archetypes(catalogue)),
        extra_target=fields.whole("extraTarget", 1, low=1),
        duration_seconds=fields.number("durationSeconds", low=0),
        relative_to=fields.choice("relativeTo", "driver", ("driver", "soak")),
        selectivity=fields.number("selectivity", 1.0, low=1e-6, high=1),
    )
    fields.finish()
    return made


def _probe(fields: FileFields, catalogue: str) -> DeliveryProbe:
    archetype = None
    if "archetype" in fields:
        archetype = fields.choice("archetype", "", _archetypes(catalogue))
    made = DeliveryProbe(
        machines=fields.optional_whole("machines"),
        archetype=archetype,
        at_seconds=fields.optional_number("atSeconds", low=0),
    )
    fields.finish()
    return made


def _archetypes(catalogue: str) -> list[str]:
    return [each.name for each in CATALOGUES[catalogue]]


def _action(fields: FileFields, load: LoadProfile) -> RunnerAction:
    name = fields.text("action")
    found = kind_of(name)
    if found is None:
        raise fields.error(
            f"unknown action {name!r}: see the list of actions in docs/guides/scale-tests.md",
            "action",
        )
    at = fields.number("atSeconds", low=0)
    if at >= load.soak_seconds:
        raise fields.error(
            f"{name} at {at:g} s: the soak ends at {load.soak_seconds:g} s; let it happen earlier",
            "atSeconds",
        )
    made = RunnerAction(
        at_seconds=at,
        action=name,
        duration_seconds=fields.number("durationSeconds", low=0),
        exclude_from_latency=fields.flag("excludeFromLatency"),
        expect={key: float(value) for key, value in fields.values("expect").items()},
    )
    if found[0].lasts and not made.duration_seconds:
        raise fields.error(f"{name} lasts for a time: add durationSeconds, such as 60")
    fields.finish()
    return made


def _check_actions(top: FileFields, profile: ScaleProfile) -> None:
    shards = shard_names(profile.shards)
    for number, action in enumerate(profile.actions):
        found = kind_of(action.action)
        assert found is not None
        kind, struck = found
        where = f"runnerActions[{number}] {action.action}"
        if profile.coordinators < kind.replicas:
            raise top.error(
                f"{where} needs {kind.replicas} coordinator replicas, the profile has "
                f"{profile.coordinators}: set topology.coordinatorReplicas: {kind.replicas}",
                "topology",
            )
        if "shard-{name}" in kind.form and struck not in shards and "operator" not in kind.form:
            raise top.error(
                f"{where}: there is no shard {struck!r}; choose one of {', '.join(shards)}"
            )


def _topology(top: FileFields) -> FleetTopology:
    fields = top.mapping("topology")
    made = FleetTopology(
        shard_replicas=fields.optional_whole("shardReplicas", low=1),
        coordinator_replicas=fields.optional_whole("coordinatorReplicas", low=1),
        clusters=fields.optional_whole("clusters", low=1),
        cluster_sizes=fields.text("clusterSizes", "lognormal:0.8"),
    )
    if made.coordinator_replicas is not None and made.coordinator_replicas % 2 == 0:
        raise fields.error(
            f"topology.coordinatorReplicas is {made.coordinator_replicas}: use an odd number",
            "coordinatorReplicas",
        )
    law, _, sigma = made.cluster_sizes.partition(":")
    lognormal = law == "lognormal" and sigma.replace(".", "", 1).isdigit()
    if made.cluster_sizes != "uniform" and not lognormal:
        raise fields.error(
            f"topology.clusterSizes is {made.cluster_sizes!r}: write uniform or lognormal:0.8",
            "clusterSizes",
        )
    fields.finish()
    return made


def _provider(fields: FileFields) -> ProviderBehaviour:
    made = ProviderBehaviour(
        latency=_latencies(fields.mapping("latency")),
        stockouts=tuple(_stockout(each) for each in fields.entries("stockouts")),
        quota=tuple(_quota(each) for each in fields.entries("quota")),
        rate_limit={k: float(v) for k, v in fields.values("rateLimit").items()},
        correlated_failures=tuple(_failure(each) for each in fields.entries("correlatedFailures")),
        spot=fields.values("spot"),
        create_failure_ratio=fields.number("createFailureRatio", low=0, high=1),
        never_ready_ratio=fields.number("neverReadyRatio", low=0, high=1),
        consistency_lag_seconds=fields.number("consistencyLagSeconds", low=0),
    )
    fields.finish()
    return made


def _latencies(fields: FileFields) -> dict[str, dict[str, LatencyModel]]:
    found: dict[str, dict[str, LatencyModel]] = {}
    for method in METHODS:
        if method not in fields:
            continue
        of_method = fields.mapping(method)
        for kind in _CAPACITY_TYPES:
            if kind in of_method:
                found.setdefault(method, {})[kind] = _latency(of_method.mapping(kind))
        of_method.finish()
    fields.finish()
    return found


def _latency(fields: FileFields) -> LatencyModel:
    made = LatencyModel(fields.number("p50Seconds", low=0), fields.number("p99Seconds", low=0))
    if made.p99_seconds < made.p50_seconds:
        raise fields.error(
            f"p99Seconds {made.p99_seconds:g} is below p50Seconds {made.p50_seconds:g}: "
            "exchange them",
            "p99Seconds",
        )
    fields.finish()
    return made


def _stockout(fields: FileFields) -> dict[str, object]:
    made: dict[str, object] = {
        "at_seconds": fields.number("atSeconds", low=0),
        "duration_seconds": fields.number("durationSeconds", low=0),
        "capacity_types": fields.texts("capacityTypes"),
    }
    for key, known in (("instanceTypes", tuple(SHAPES)), ("zones", ZONES)):
        made[key] = fields.texts(key)
        wrong = [name for name in fields_of(made[key]) if name not in known]
        if wrong:
            raise fields.error(f"{key}: {wrong[0]!r} is not one of {', '.join(known)}", key)
    fields.finish()
    return made


def fields_of(value: object) -> tuple[str, ...]:
    """A tuple of texts, as it was read."""
    return value if isinstance(value, tuple) else ()


def _quota(fields: FileFields) -> dict[str, object]:
    made: dict[str, object] = {
        "instance_type": fields.choice("instanceType", "", SHAPES),
        "capacity_type": fields.text("capacityType", "on_demand"),
        "zone": fields.choice("zone", ZONES[0], ZONES),
        "max": fields.whole("max"),
    }
    fields.finish()
    return made


def _failure(fields: FileFields) -> dict[str, object]:
    made: dict[str, object] = {
        "at_seconds": fields.number("atSeconds", low=0),
        "domain": fields.choice("domain", "", ("rack", "zone")),
        "value": fields.text("value"),
        "fraction": fields.number("fraction", 1.0, low=0, high=1),
        "return_seconds": fields.number("returnSeconds", low=0),
    }
    fields.finish()
    return made


def _overrides(top: FileFields) -> dict[str, object]:
    given = top.values("overrides")
    for name, value in given.items():
        check_override(name, value, lambda text: top.error(text, "overrides"))
    return given


def check_override(name: str, value: object, error: object) -> None:
    """Refuse a setting that the runner does not fix, or a value it cannot have."""
    assert callable(error)
    if name not in OVERRIDES:
        raise error(f"overrides.{name} is not a setting: choose one of {', '.join(OVERRIDES)}")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise error(f"overrides.{name} is {value!r}: write a number of 0 or more")
