"""Written worlds for examples: a machine, a need and a decision in one line each.

Amounts are whole units (`cpu=4`), money is dollars, times are seconds before now. Every decision
is made by both engines, so an example is also a comparison with the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bigfleet.decision import ActionKind, Carry, Plan, Policy, Reason
from bigfleet.decision.policy import SECOND
from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    Stamp,
)
from bigfleet.model.facts import ClusterFacts
from compare import stamps_of
from fleets import NOW, RACK, ZONE
from living import Both

S = MachineState
A, B = "c-a", "c-b"
UNBOUND = (S.SPECULATIVE, S.CREATING, S.IDLE, S.DELETING, S.FAILED)


def need(
    cluster: str = A,
    *,
    cpu: int = 4,
    unit: int | None = None,
    priority: int = 100,
    where: Iterable[Requirement] = (),
    same: str = "",
    spread: tuple[str, int] | None = None,
    interruption: int = 0,
    reclamation: int = 0,
    group: str = "",
    **more: int,
) -> Need:
    """A row that asks for `cpu` in pods of `unit`; `more` are other resources of the whole row."""
    requirements = [*where, *([Requirement.of(same, RequirementOperator.SAME)] if same else [])]
    profile = Profile.of(
        requirements,
        [Spread(*spread)] if spread else [],
        priority,
        PenaltyBucket(interruption),
        PenaltyBucket(reclamation),
    )
    aggregate = {"cpu": cpu, **more}
    pods = {"cpu": cpu if unit is None else unit}
    return Need(
        cluster,
        profile,
        {name: 1000 * amount for name, amount in aggregate.items()},
        {name: 1000 * amount for name, amount in pods.items()},
        group or ("gang" if same else ""),
    )


def label(key: str, operator: str, *values: str) -> Requirement:
    return Requirement.of(key, RequirementOperator(operator), values)


def machine(
    name: str,
    state: MachineState = S.IDLE,
    *,
    cpu: int = 4,
    serves: Need | None = None,
    sequence: int = 1,
    leaves_for: Need | None = None,
    leaving: bool = False,
    final: bool = False,
    price: float = 1.0,
    risk: float = 0.0,
    kind: CapacityType = CapacityType.ON_DEMAND,
    rack: str = "",
    zone: str = "z-1",
    labels: Mapping[str, str] | None = None,
    idle_for: int = 0,
    not_ready_for: int = 0,
    ends_in: int = 0,
    provider: str = "p",
    cluster: str = "",
    do_not_disrupt: bool = False,
    excluded: bool = False,
    reserved: bool = False,
    backing_off: bool = False,
    pods: int | None = None,
    **more: int,
) -> Machine:
    """A machine, bound to (or made for) the cluster of the need it `serves`."""
    bound = state not in UNBOUND
    waiting = None if leaves_for is None else Stamp.for_need(leaves_for, 2)
    return Machine(
        id=name,
        state=state,
        host=None if state in (S.SPECULATIVE, S.CREATING) else HostRef(provider, name),
        provider=provider,
        region="r",
        cluster=(cluster or (serves.cluster if serves else A)) if bound else "",
        instance_type=f"t{cpu}",
        zone=zone,
        capacity_type=kind,
        labels={**({RACK: rack} if rack else {}), **(labels or {})},
        resources={name: 1000 * amount for name, amount in {"cpu": cpu, **more}.items()},
        price_per_hour=price,
        interruption_probability=risk,
        interruption_at_ns=NOW + ends_in * SECOND if ends_in else 0,
        stamp=Stamp.for_need(serves, sequence) if serves else None,
        leaving=Departure(waiting, NOW, final)
        if leaving or final or leaves_for or state is S.DRAINING
        else None,
        idle_since_ns=NOW - idle_for * SECOND if state is S.IDLE else 0,
        not_ready_since_ns=NOW - not_ready_for * SECOND if not_ready_for else 0,
        do_not_disrupt=do_not_disrupt,
        pods=pods,
        last_error="HostLost: gone" if state is S.FAILED else "",
        excluded=excluded,
        reserved=reserved,
        backing_off=backing_off,
    )


def serving(name: str, need: Need, **how: object) -> Machine:
    """A Configured machine stamped for a need."""
    return machine(name, S.CONFIGURED, serves=need, **how)  # type: ignore[arg-type]


@dataclass
class Outcome:
    """What was decided, by names."""

    plan: Plan
    needs: list[Need]
    does: dict[str, ActionKind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.does = {action.machine: action.kind for action in self.plan}

    def row(self, index: int = 0) -> int:
        """The plan's row that stands for a need."""
        v = self.plan.verdicts
        for row in range(len(v)):
            if index in v.members[v.members_at[row] : v.members_at[row + 1]]:
                return row
        raise AssertionError(f"need {index} has no row")

    def serves(self, index: int = 0) -> set[str]:
        """Machines a need claims."""
        row, plan = self.row(index), self.plan
        return {plan.fleet.ids[m] for m, r in enumerate(plan.claimed) if r == row}

    def satisfied(self, index: int = 0) -> bool:
        return bool(self.plan.verdicts.satisfied[self.row(index)])

    def reason(self, index: int = 0) -> Reason:
        return self.plan.reason(self.row(index))

    def domain(self, index: int = 0) -> str:
        return self.plan.domain(self.row(index))

    def lacks(self, index: int = 0) -> dict[str, int]:
        """Milli-units a need still misses."""
        return self.plan.missing(self.row(index))

    def grace(self, name: str) -> int:
        return next(a.grace_seconds for a in self.plan if a.machine == name)

    def stamp(self, name: str) -> Stamp | None:
        """The stamp a machine is given now."""
        return stamps_of(self.plan)[0].get(name)

    def meant_for(self, name: str) -> Stamp | None:
        """The stamp a preempted machine will carry."""
        return stamps_of(self.plan)[1].get(name)


def shard(
    policy: Policy | None = None,
    facts: Mapping[str, ClusterFacts] | None = None,
    carry: Carry | None = None,
) -> Both:
    """Both engines with their memory; reclaims are not held back unless the policy says so."""
    known = {A: ClusterFacts(), B: ClusterFacts(), **(facts or {})}
    return Both(policy or Policy(reclaim_hold=0), known, carry or Carry())


def decide(
    machines: Iterable[Machine],
    needs: Iterable[Need],
    policy: Policy | None = None,
    facts: Mapping[str, ClusterFacts] | None = None,
    carry: Carry | None = None,
    now: int = NOW,
) -> Outcome:
    """One cycle."""
    rows = list(needs)
    return Outcome(shard(policy, facts, carry).plan(machines, rows, now), rows)


def after(
    both: Both, machines: Iterable[Machine], needs: Iterable[Need], seconds: int = 0
) -> Outcome:
    """One more cycle of a shard, some seconds after the start."""
    rows = list(needs)
    return Outcome(both.plan(machines, rows, NOW + seconds * SECOND), rows)


__all__ = [
    "NOW", "RACK", "ZONE", "A", "B", "Outcome", "S", "after", "decide", "label", "machine", "need",
    "replace", "serving", "shard",
]  # fmt: skip
