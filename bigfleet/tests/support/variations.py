"""Generated cases pushed to where one rule does most of the work: spread, many equal gangs, or
places: more of them than are told, some of them shunned.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bigfleet.model import (
    LABEL_HOSTNAME,
    Machine,
    MachineState,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    Stamp,
    aggregate_rows,
)
from bigfleet.model.facts import ClusterFacts
from fleets import POOL, RACK, ZONE, Case

S = MachineState


def spread_out(case: Case, rng: Random) -> Case:
    """Every need without Same is spread, over one label or two, and more machines are free."""
    needs = [_spread(need, rng) if not need.profile.same else need for need in case.needs]
    machines = [_freed(m, rng) if rng.random() < 0.5 else m for m in case.machines]
    return _again(replace(case, machines=machines), needs)


def in_gangs(case: Case, rng: Random) -> Case:
    """A few kinds of gang, several equal ones of each; some under two labels, some named places."""
    needs = [need for need in case.needs if rng.random() < 0.4]
    for kind in range(rng.randint(1, 3)):
        needs += _gangs(rng, rng.choice(sorted(case.facts)), kind)
    machines = [_freed(m, rng) if rng.random() < 0.4 else m for m in case.machines]
    return _again(replace(case, machines=machines), needs)


def in_many_places(case: Case, rng: Random) -> Case:
    """Ten racks for gangs of a few machines; most rows shun some of them, and clusters put more on
    their nodes than some machines offer.
    """
    needs = [need for need in case.needs if rng.random() < 0.5]
    for kind in range(rng.randint(1, 4)):
        needs += _gangs(rng, rng.choice(sorted(case.facts)), kind)
    needs = [_uneven(_shunning(need, rng), rng) for need in needs]
    machines = [_elsewhere(_freed(m, rng), rng) for m in case.machines]
    facts = {name: _burdened(known, rng) for name, known in case.facts.items()}
    return _again(replace(case, machines=machines, facts=facts), needs)


def over_hosts(case: Case, rng: Random) -> Case:
    """Most needs are spread over hosts as well, most gangs want one host for all of it, and a few
    machines have a host's name.
    """
    needs = [_over_hosts(need) if rng.random() < 0.7 else need for need in case.needs]
    needs = [_on_one_host(need, rng) if need.profile.same else need for need in needs]
    machines = [
        replace(m, labels={**m.labels, LABEL_HOSTNAME: m.id}) if rng.random() < 0.2 else m
        for m in case.machines
    ]
    return _again(replace(case, machines=machines), needs)


def _over_hosts(need: Need) -> Need:
    p = need.profile
    spread = [*p.spread, Spread(LABEL_HOSTNAME, 1)]
    profile = Profile.of(p.requirements, spread, p.priority, p.interruption, p.reclamation)
    return replace(need, profile=profile)


def _on_one_host(need: Need, rng: Random) -> Need:
    p = need.profile
    others = [r for r in p.requirements if r not in p.same or rng.random() < 0.3]
    host = Requirement.of(LABEL_HOSTNAME, RequirementOperator.SAME)
    profile = Profile.of([*others, host], p.spread, p.priority, p.interruption, p.reclamation)
    return replace(need, profile=profile)


def _shunning(need: Need, rng: Random) -> Need:
    p = need.profile
    shunned = [
        Requirement.of(RACK, RequirementOperator.NOT_IN, [f"r-{rack}"])
        for rack in rng.sample(range(4), rng.choice([0, 0, 1, 2]))
    ]
    profile = Profile.of(
        [*p.requirements, *shunned], p.spread, p.priority, p.interruption, p.reclamation
    )
    return replace(need, profile=profile)


def _uneven(need: Need, rng: Random) -> Need:
    """Sometimes no whole number of pods, or one resource more than its pods name."""
    more = {"cpu": 500} if rng.random() < 0.2 else {"gpu": 1_000} if rng.random() < 0.1 else {}
    amounts = {d: need.aggregate.get(d, 0) + v for d, v in more.items()}
    return replace(need, aggregate={**need.aggregate, **amounts})


def _elsewhere(m: Machine, rng: Random) -> Machine:
    rack = rng.randint(0, 9)
    labels = {**m.labels, RACK: f"r-{rack}"}
    return replace(m, labels=labels, zone=f"z-{'ab'[rack % 2]}")


def _burdened(facts: ClusterFacts, rng: Random) -> ClusterFacts:
    burden = {"gpu": 1_000, "memory": rng.choice([500, 17_000])} if rng.random() < 0.3 else {}
    return replace(facts, overhead={**facts.overhead, **burden})


def _again(case: Case, needs: list[Need]) -> Case:
    """The case with other needs, and stamps that are for them where they were for the old."""
    unique = aggregate_rows(needs)
    rng = Random(len(unique) * 1_000 + len(case.machines))
    old = {need.stamp_key for need in case.needs}

    def said(stamp: Stamp | None) -> Stamp | None:
        if stamp is None or stamp.key not in old:
            return stamp
        return Stamp.for_need(rng.choice(unique), stamp.sequence)

    machines = []
    for m in case.machines:
        stamp = said(m.stamp)
        bound = m.cluster and stamp is not None and rng.random() < 0.8
        leaving = m.leaving and replace(m.leaving, for_stamp=said(m.leaving.for_stamp))
        cluster = stamp.cluster if bound and stamp is not None else m.cluster
        machines.append(replace(m, stamp=stamp, cluster=cluster, leaving=leaving))
    return replace(case, machines=machines, needs=unique)


def _spread(need: Need, rng: Random) -> Need:
    p = need.profile
    keys = rng.sample([ZONE, RACK, POOL], rng.choice([1, 1, 2]))
    modes = [SpreadMode.DO_NOT_SCHEDULE] * 4 + [SpreadMode.SCHEDULE_ANYWAY]
    spread = [Spread(key, rng.randint(1, 2), rng.choice(modes)) for key in keys]
    profile = Profile.of(p.requirements, spread, p.priority, p.interruption, p.reclamation)
    return replace(need, profile=profile)


def _gangs(rng: Random, cluster: str, kind: int) -> list[Need]:
    same = [Requirement.of(rng.choice([RACK, RACK, ZONE]), RequirementOperator.SAME)]
    if rng.random() < 0.25:
        same = [
            Requirement.of(RACK, RequirementOperator.SAME),
            Requirement.of(POOL, RequirementOperator.SAME),
        ]
    elif rng.random() < 0.2:
        same = [Requirement.of(RACK, RequirementOperator.SAME, ["r-0", "r-2"])]
    profile = Profile.of(same, priority=rng.choice([0, 100, 1_000, 1_000_000]))
    unit = {"cpu": rng.choice([2, 3, 4]) * 1_000, "memory": rng.choice([4, 8, 16]) * 1_000}
    count = rng.choice([1, 2, 2, 3, 5])
    return [
        Need(
            cluster=cluster,
            profile=profile,
            aggregate={d: count * v for d, v in unit.items()},
            min_unit=unit,
            group=f"k-{kind}-{number}",
            arrival_ns=rng.randint(1, 3),
        )
        for number in range(rng.randint(1, 5))
    ]


def _freed(m: Machine, rng: Random) -> Machine:
    if m.state not in (S.CONFIGURED, S.CONFIGURING, S.FAILED, S.DELETING):
        return m
    state = rng.choice([S.IDLE, S.SPECULATIVE])
    return replace(
        m,
        state=state,
        cluster="",
        leaving=None,
        stamp=None if state is S.SPECULATIVE else m.stamp,
        host=None if state is S.SPECULATIVE else m.host,
        last_error="",
    )
