"""Machines, needs and scenarios, written in one line each.

Amounts are whole units (`cpu=8`), money is dollars, and times are seconds after the start of the
scenario. A need is referred to by its label, a machine by its id.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bigfleet.decision import Carry, Policy
from bigfleet.decision.policy import SECOND
from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    Stamp,
    bucket_of,
)
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.lifecycle import HELD, WITHOUT_HOST

S: Final = MachineState
START: Final = 1_000_000 * SECOND
RACK: Final = "topology.bigfleet/rack"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY_TYPE: Final = "bigfleet.lucy.sh/capacity-type"
PINNED: Final = math.inf
PROVIDER: Final = "cloud"
REGION: Final = "region-1"
SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND
RESERVED, BARE_METAL = CapacityType.RESERVED, CapacityType.BARE_METAL


def need(
    cluster: str,
    cpu: int,
    *,
    unit: int | None = None,
    priority: int = 100,
    where: Iterable[Requirement] = (),
    same: str = "",
    group: str = "",
    spread: str = "",
    interruption: float = 0,
    reclamation: float = 0,
) -> Need:
    """A need for `cpu` CPUs in pods of `unit`; the penalties are dollars."""
    profile = Profile.of(
        [*where, *([Requirement.of(same, RequirementOperator.SAME)] if same else [])],
        [Spread(spread, 1)] if spread else [],
        priority,
        bucket_of(interruption),
        bucket_of(reclamation),
    )
    unit = cpu if unit is None else unit
    return Need(cluster, profile, {"cpu": 1000 * cpu}, {"cpu": 1000 * unit}, group)


def has(key: str, *values: str) -> Requirement:
    """The requirement that a label has one of these values."""
    return Requirement.of(key, RequirementOperator.IN, values)


def machine(
    name: str,
    state: MachineState,
    kind: CapacityType = ON_DEMAND,
    *,
    cpu: int = 4,
    price: float = 0.0,
    risk: float = 0.0,
    rack: str = "",
    zone: str = "",
    serves: Need | None = None,
    idle_since: int = 0,
) -> Machine:
    """A machine; one that `serves` a need is stamped for it, and bound to its cluster if bound."""
    stamp = Stamp.for_need(serves, 1) if serves else None
    return Machine(
        id=name,
        state=state,
        host=None if state in WITHOUT_HOST else HostRef(PROVIDER, name),
        provider=PROVIDER,
        region=REGION,
        cluster=serves.cluster if serves and state in HELD else "",
        instance_type=f"cpu-{cpu}",
        zone=zone,
        capacity_type=kind,
        labels={RACK: rack} if rack else {},
        resources={"cpu": 1000 * cpu},
        price_per_hour=price,
        interruption_probability=risk,
        stamp=stamp,
        leaving=Departure(None, START) if state is S.DRAINING else None,
        idle_since_ns=START + idle_since * SECOND if state is S.IDLE else 0,
    )


@dataclass
class Situation:
    """What a shard knows between two cycles. Events change it."""

    machines: dict[str, Machine]
    needs: dict[str, Need]
    facts: dict[str, ClusterFacts]
    policy: Policy
    carry: Carry = field(default_factory=Carry)
    now: int = START

    def change(self, name: str, **changes: object) -> None:
        """Change fields of one machine."""
        self.machines[name] = self.machines[name].but(**changes)


@dataclass(frozen=True)
class Event:
    """Something that happens between two cycles, in words and as a change."""

    text: str
    apply: Callable[[Situation], None]


@dataclass(frozen=True)
class CycleInput:
    """One cycle: when it runs, what happens before it, and what the reader should notice."""

    second: int = 0
    events: tuple[Event, ...] = ()
    notice: str = ""


@dataclass(frozen=True)
class Scenario:
    """One idea: a fleet, its demand, and the cycles that show it."""

    name: str
    title: str
    summary: str
    machines: tuple[Machine, ...]
    needs: Mapping[str, Need]
    cycles: tuple[CycleInput, ...]
    policy: Policy = field(default_factory=lambda: Policy(reclaim_hold=0))
    settings: Mapping[str, str] = field(default_factory=dict)
    """What of the policy matters here, in words."""
    unreported: tuple[str, ...] = ()
    """Clusters that have not reported since the shard started."""

    def situation(self) -> Situation:
        """What the shard knows before the first cycle."""
        clusters = {n.cluster for n in self.needs.values()}
        clusters |= {m.cluster for m in self.machines if m.cluster}
        facts = {c: ClusterFacts(reported=c not in self.unreported) for c in sorted(clusters)}
        machines = {m.id: m for m in self.machines}
        return Situation(machines, dict(self.needs), facts, self.policy)


# -- events ----------------------------------------------------------------------------------------

_ENDS: Final = {S.CREATING: S.IDLE, S.CONFIGURING: S.CONFIGURED, S.DELETING: S.SPECULATIVE}


def operations_end() -> Event:
    """Every operation that is under way succeeds, drains included."""

    def apply(situation: Situation) -> None:
        for each in list(situation.machines.values()):
            if each.state in _ENDS:
                _end(situation, each, _ENDS[each.state])
            elif each.leaving is not None:
                stamp = each.leaving.for_stamp
                situation.change(each.id, cluster="", leaving=None, stamp=stamp)
                _end(situation, situation.machines[each.id], S.IDLE)

    return Event("The provider finishes every operation that was started.", apply)


def _end(situation: Situation, each: Machine, state: MachineState) -> None:
    host = None if state is S.SPECULATIVE else each.host or HostRef(PROVIDER, each.id)
    idle_since = situation.now if state is S.IDLE else 0
    situation.change(each.id, state=state, host=host, idle_since_ns=idle_since)


def create_fails(name: str) -> Event:
    """A Create fails because the offering is out of stock; the slot is Speculative again."""

    def apply(situation: Situation) -> None:
        failed = situation.machines[name]
        offering = (failed.provider, failed.instance_type, failed.zone, failed.capacity_type)
        situation.carry = situation.carry.with_stock_out(offering, situation.now)
        situation.change(name, state=S.SPECULATIVE, stamp=None)

    return Event(f"The Create of `{name}` fails: the provider is out of capacity.", apply)


def asks_for(label: str, wanted: Need | None, cpu: int = 0) -> Event:
    """A need appears, or asks for another amount; an amount of 0 removes it."""

    def apply(situation: Situation) -> None:
        known = situation.needs.get(label) or wanted
        if known is None or not cpu:
            situation.needs.pop(label, None)
        else:
            less = known.aggregate["cpu"] > 1000 * cpu
            situation.needs[label] = replace(
                known,
                aggregate={"cpu": 1000 * cpu},
                shrunk_at=situation.now if less else known.shrunk_at,
            )

    text = f"The roll-up asks for {cpu} CPUs for `{label}`." if cpu else f"`{label}` is gone."
    return Event(text, apply)


def not_ready(name: str, seconds: int) -> Event:
    """A cluster says that a node is not Ready."""

    def apply(situation: Situation) -> None:
        situation.change(name, not_ready_since_ns=situation.now - seconds * SECOND)

    return Event(f"The node of `{name}` has not been Ready for {seconds} s.", apply)


def announced(name: str, seconds: int) -> Event:
    """A provider announces the end of a machine."""

    def apply(situation: Situation) -> None:
        situation.change(name, interruption_at_ns=situation.now + seconds * SECOND)

    return Event(f"The provider announces that `{name}` ends in {seconds} s.", apply)


def reports(cluster: str) -> Event:
    """The first roll-up of a cluster arrives."""

    def apply(situation: Situation) -> None:
        situation.facts[cluster] = ClusterFacts()

    return Event(f"The first roll-up of cluster `{cluster}` arrives.", apply)
