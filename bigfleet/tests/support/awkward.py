"""Generated fleets in which much stays unmet, for every kind of blocker there is.

Built on `seen.mixed_case`; on top of it pieces that no machine holds, resources that no machine
has or only few have, pinned demand beside spot machines, tight quotas and spend limits, offerings
out of stock, clusters without a session, full fleets, and requirements that rule each other out.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bigfleet.model import (
    CapacityType,
    Machine,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    aggregate_rows,
)
from bigfleet.model.facts import ClusterFacts
from fleets import Case
from seen import mixed_case

GPU = "nvidia.com/gpu"
ARCH = "kubernetes.io/arch"
S = MachineState


def awkward_case(seed: int) -> Case:
    """The case of a seed."""
    rng, case = Random(f"awkward {seed}"), mixed_case(seed)
    machines = [_labelled(m, rng) for m in case.machines]
    if rng.random() < 0.3:
        machines = [_taken(m, case, rng) for m in machines]
    if rng.random() < 0.2:
        machines = [_on_spot(m) for m in machines]
    needs = aggregate_rows(_awkward(need, rng) for need in case.needs)
    policy = case.policy
    if rng.random() < 0.2:
        out = sum(m.state is not S.SPECULATIVE for m in machines if m.provider == "p-1")
        policy = replace(policy, quotas={("p-1", "eu"): out + rng.randint(0, 2)})
    if rng.random() < 0.15:
        policy = replace(policy, spend_limit_micro=rng.randint(0, 6_000_000))
    offerings = sorted({(m.provider, m.instance_type, m.zone, m.capacity_type) for m in machines})
    cooling = {o for o in offerings if rng.random() < rng.choice([0.0, 0.0, 0.1, 0.6])}
    facts = {name: _silenced(fact, rng) for name, fact in case.facts.items()}
    drains = {o: s for o, s in case.drain_seconds.items() if o in offerings}
    return Case(machines, needs, facts, policy, cooling, drains)


def _labelled(m: Machine, rng: Random) -> Machine:
    labels = {**m.labels, ARCH: rng.choice(["amd64", "amd64", "amd64", "arm64"])}
    resources = dict(m.resources)
    if rng.random() < 0.1:
        resources[GPU] = rng.choice([1, 2]) * 1000
    return replace(m, labels=labels, resources=resources)


def _taken(m: Machine, case: Case, rng: Random) -> Machine:
    """The fleet is full: what was free serves a cluster."""
    if m.state not in (S.IDLE, S.SPECULATIVE) or not case.needs or rng.random() < 0.1:
        return m
    cluster = rng.choice(case.needs).cluster
    return replace(
        m, state=S.CONFIGURED, cluster=cluster, stamp=None, idle_since_ns=0, pods=None,
    )  # fmt: skip


def _on_spot(m: Machine) -> Machine:
    return replace(
        m, capacity_type=CapacityType.SPOT, interruption_probability=0.3, price_per_hour=0.1
    )


def _awkward(need: Need, rng: Random) -> Need:
    p = need.profile
    requirements, interruption = list(p.requirements), p.interruption
    aggregate, unit = dict(need.aggregate), dict(need.min_unit)
    drawn = rng.random()
    if drawn < 0.12:
        requirements.append(
            Requirement.of(ARCH, RequirementOperator.IN, [rng.choice(["arm64", "s390x"])])
        )
    elif drawn < 0.24:
        count = rng.choice([1, 2, 4])
        aggregate[GPU] = count * 1000
        if unit:
            unit[GPU] = 1000
    elif drawn < 0.34 and unit:
        unit["cpu"] = rng.choice([20, 64]) * 1000
        aggregate["cpu"] = unit["cpu"] * rng.choice([1, 2])
    elif drawn < 0.44:
        interruption = PenaltyBucket.PINNED
    elif drawn < 0.52:
        aggregate = {name: 20 * amount for name, amount in aggregate.items()}
    elif drawn < 0.56:
        requirements.append(Requirement.of("pool", RequirementOperator.NOT_IN, ["a", "b"]))
    profile = Profile.of(requirements, p.spread, p.priority, interruption, p.reclamation)
    return replace(need, profile=profile, aggregate=aggregate, min_unit=unit)


def _silenced(fact: ClusterFacts, rng: Random) -> ClusterFacts:
    blocked = fact.blocked or rng.random() < 0.05
    return ClusterFacts(fact.reported, blocked, fact.overhead)
