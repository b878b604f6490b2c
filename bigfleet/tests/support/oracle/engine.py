"""One cycle of the oracle, from values to a plan that tests can compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bigfleet.decision.kinds import ActionKind
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS, Policy
from bigfleet.model import CapacityType, Machine, MachineState, Need, Stamp
from bigfleet.model.facts import ClusterFacts
from oracle.acquire import assign
from oracle.budget import left_out
from oracle.credit import credit
from oracle.normalise import FoldKey, normalise
from oracle.preempt import preempt
from oracle.reclaim import Verdict, reclaims, releases, verdict
from oracle.world import Row, World, ident_of_need

S = MachineState
Offering = tuple[str, str, str, CapacityType]


@dataclass(frozen=True)
class Carry:
    """What the oracle remembers, by id and identity."""

    last_sequence: int = 0
    unclaimed: Mapping[str, int] = field(default_factory=dict)
    unmet_since: Mapping[tuple[object, ...], int] = field(default_factory=dict)
    folds: Mapping[FoldKey, tuple[int, int]] = field(default_factory=dict)
    cooling: frozenset[Offering] = frozenset()
    drain_seconds: Mapping[Offering, float] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OraclePlan:
    """(kind, machine, cluster, need, grace) per action; stamps given; claims; verdicts."""

    actions: tuple[tuple[ActionKind, str, str, tuple[object, ...] | None, int], ...]
    stamps: Mapping[str, Stamp]
    preempt_for: Mapping[str, Stamp]
    claims: Mapping[str, tuple[object, ...]]
    verdicts: Mapping[tuple[object, ...], Verdict]
    carry: Carry
    frozen: frozenset[str] = frozenset()


def row_ident(row: Row) -> tuple[object, ...]:
    aggregate = tuple(sorted(row.need.min_unit.items())) if row.folded else ()
    return (*ident_of_need(row.need), row.folded, aggregate)


def decide(
    machines: Iterable[Machine],
    needs: Iterable[Need],
    facts: Mapping[str, ClusterFacts],
    policy: Policy,
    carry: Carry,
    now: int,
) -> OraclePlan:
    """Machines, demand, policy, what was carried over and the time -> a plan."""
    fleet = {m.id: m for m in sorted(machines, key=lambda m: m.id)}
    base = max(carry.last_sequence + 1, now)
    needs = list(needs)
    frozen = left_out(fleet.values(), needs, facts, policy)
    needs = [need for need in needs if need.cluster not in frozen]
    facts = {c: replace(f, reported=f.reported and c not in frozen) for c, f in facts.items()}
    rows, folds = normalise(needs, fleet.values(), facts, carry.folds, base)
    world = World(fleet, rows, facts, policy, now, set(carry.cooling), carry.drain_seconds)
    world.phantom = phantoms(world)
    for m in fleet.values():
        if m.state is not S.SPECULATIVE:
            key = (m.provider, m.region)
            world.used[key] = world.used.get(key, 0) + 1
            world.spend += world.elastic_price(m)
    credit(world)
    assign(world)
    preempt(world)
    plan = _finish(world, carry, base, folds)
    return replace(plan, frozen=frozen, carry=replace(plan.carry, frozen=frozen))


def phantoms(world: World) -> set[str]:
    """Configured, but no Ready node for too long; unless the whole cluster looks like that."""
    by_cluster: dict[str, list[str]] = {}
    total: dict[str, int] = {}
    for m in world.machines.values():
        if m.state is not S.CONFIGURED:
            continue
        total[m.cluster] = total.get(m.cluster, 0) + 1
        since = m.not_ready_since_ns
        if since > 0 and world.now - since > world.policy.readiness_deadline:
            by_cluster.setdefault(m.cluster, []).append(m.id)
    found: set[str] = set()
    for cluster, ids in by_cluster.items():
        outage = len(ids) > world.policy.phantom_fraction * total[cluster]
        if not (outage and len(ids) >= world.policy.phantom_minimum):
            found.update(ids)
    return found


def _finish(
    world: World, carry: Carry, base: int, folds: dict[FoldKey, tuple[int, int]]
) -> OraclePlan:
    unclaimed = {
        m.id: carry.unclaimed.get(m.id, world.now)
        for m in world.machines.values()
        if m.state is S.CONFIGURED and m.id not in world.claimed_by
    }
    actions: list[tuple[ActionKind, str, str, tuple[object, ...] | None, int]] = []
    for row in world.all_rows():
        top = row_ident(row.parent or row)
        actions += [(ActionKind.KEEP, mid, row.need.cluster, top, 0) for mid in row.kept]
        for mid in row.taken:
            idle = world.machines[mid].state is S.IDLE
            kind = ActionKind.BOOTSTRAP if idle else ActionKind.PROVISION
            actions.append((kind, mid, row.need.cluster, top, 0))
    for mid, (row, grace) in world.preempted.items():
        cluster = world.machines[mid].cluster
        actions.append((ActionKind.PREEMPT, mid, cluster, row_ident(row), grace))
    for m in reclaims(world, unclaimed):
        actions.append((ActionKind.RECLAIM, m.id, m.cluster, None, VOLUNTARY_GRACE_SECONDS))
    for m in releases(world):
        actions.append((ActionKind.DELETE, m.id, "", None, 0))
    stamps, preempt_for, last = _number(world, base, carry.last_sequence)
    verdicts = {row_ident(row): verdict(world, row) for row in world.rows}
    unmet = {
        ident: carry.unmet_since.get(ident, world.now)
        for ident, v in verdicts.items()
        if not v.satisfied
    }
    return OraclePlan(
        actions=tuple(actions),
        stamps=stamps,
        preempt_for=preempt_for,
        claims={mid: row_ident(row.parent or row) for mid, row in world.claimed_by.items()},
        verdicts=verdicts,
        carry=Carry(last, unclaimed, unmet, folds, carry.cooling, carry.drain_seconds),
    )


def _number(world: World, base: int, last: int) -> tuple[dict[str, Stamp], dict[str, Stamp], int]:
    """Stamps are numbered by row, and then in the order they were given."""
    given: list[tuple[int, int, str, Stamp, bool]] = []
    stamps: dict[str, Stamp] = {}
    for mid, (row, stamp, sequence) in world.restamped.items():
        if sequence is not None:
            stamps[mid] = _with_sequence(stamp, sequence)
        else:
            given.append((row.position, world.turns[mid], mid, stamp, False))
    for mid, (row, _) in world.preempted.items():
        stamp = Stamp.for_need(world.member_for(row), 0)
        given.append((row.position, world.turns[mid], mid, stamp, True))
    preempt_for: dict[str, Stamp] = {}
    for number, (_, _, mid, stamp, leaving) in enumerate(sorted(given, key=lambda g: g[:2])):
        last = base + number
        (preempt_for if leaving else stamps)[mid] = _with_sequence(stamp, last)
    return stamps, preempt_for, last


def _with_sequence(stamp: Stamp, sequence: int) -> Stamp:
    return replace(stamp, sequence=sequence)
