"""The benchmark's workloads: seeded scenarios of any size, each with the result it must have.

steady       all demand met; 3 % of the rows change each cycle
gangs        93 % of the rows co-located gangs smaller than a machine, half of them new
gangs-whole  a quarter of the rows gangs of whole machines in one rack, half of them new
cold         nothing bound, all demand new
reclaim      demand halves
preempt      everything bound at low priority, high-priority demand comes
one-to-one   as many needs as machines, all new
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.scenario.document import Scenario
from bigfleet.scenario.errors import WorkloadError
from bigfleet_lab.simulate.building import (
    CLUSTERS,
    Builder,
    Group,
    Scope,
    Segment,
    parts,
    share_of,
    times,
)

SIZES: Final = (5_000, 50_000, 500_000)
_ACQUIRING: Final = (ActionKind.BOOTSTRAP.title, ActionKind.PROVISION.title)
_PRIORITIES: Final = (0, 100, 1_000, 100_000)
_CRITICAL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """What a cycle must have decided; None where nothing is said."""

    unmet: int | None = 0
    acquired: int | None = None
    reclaimed: int | None = 0
    preempted: int | None = 0

    def complaints(self, actions: Mapping[str, int], unmet: int) -> list[str]:
        """Where a result differs, in words; empty when it is right."""
        acquired = sum(actions.get(kind, 0) for kind in _ACQUIRING)
        found = (
            ("unmet needs", self.unmet, unmet),
            ("machines acquired", self.acquired, acquired),
            ("reclaims", self.reclaimed, actions.get(ActionKind.RECLAIM.title, 0)),
            ("preemptions", self.preempted, actions.get(ActionKind.PREEMPT.title, 0)),
        )
        return [
            f"{count} {what}, must be {wanted}"
            for what, wanted, count in found
            if wanted is not None and count != wanted
        ]


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """A scenario, the result it must have, and whether its demand keeps changing."""

    scenario: Scenario
    expected: ExpectedResult
    steady: bool = False


def make_workload(name: str, machines: int, seed: int = 1) -> BenchWorkload:
    """The workload of a name; the same for the same size and seed."""
    maker = WORKLOADS.get(name)
    if maker is None:
        raise WorkloadError(f"workload {name!r} is unknown: use one of {', '.join(WORKLOADS)}")
    # Rows that change for hundreds of cycles drift to the cheapest machines they may use: only
    # where all that share machines may use the same ones leaves none without.
    builder = Builder(machines, seed, separate=name == "steady")
    expected = maker(builder, machines)
    return BenchWorkload(builder.scenario(f"{name}-{machines}"), expected, steady=name == "steady")


def need_count(name: str, machines: int) -> int:
    """How many needs a workload has: one per 25 machines, fewer and larger ones when steady."""
    if name == "one-to-one":
        return machines
    if name == "steady":
        return max(10, machines // 100, min(500, machines // 10))
    return max(10, machines // 25)


def _steady(builder: Builder, machines: int) -> ExpectedResult:
    for group, count in builder.shares(need_count("steady", machines), spare=0.2):
        need, segments = _plain(builder, group, count)
        builder.bind(segments, need)
    # Rows grow and shrink, so machines come and go; but no need may ever go without.
    return ExpectedResult(unmet=0, reclaimed=None)


def _cold(builder: Builder, machines: int) -> ExpectedResult:
    total = 0
    for group, count in builder.shares(need_count("cold", machines), spare=0.08):
        _, segments = _plain(builder, group, count, ordered=True)
        builder.leave(segments)
        total += count
    return ExpectedResult(acquired=total)


def _reclaim(builder: Builder, machines: int) -> ExpectedResult:
    total = 0
    for group, count in builder.shares(need_count("reclaim", machines), spare=0.05):
        need, segments = _plain(builder, group, count, asking=(count + 1) // 2)
        builder.bind(segments, need)
        total += count // 2
    return ExpectedResult(acquired=0, reclaimed=total)


def _preempt(builder: Builder, machines: int) -> ExpectedResult:
    needs = need_count("preempt", machines)
    for group, count in builder.shares(needs * 3 // 4, spare=0.0):
        cluster = builder.cluster(0, CLUSTERS // 2 - 1)
        need, segments = _plain(builder, group, count, cluster=cluster, priority=0)
        builder.bind(segments, need)
    total = 0
    for group, count in builder.split(needs // 4):
        # A fifth of the fleet changes hands.
        for asked in parts(len(group) // 5, count):
            cluster = builder.cluster(CLUSTERS // 2, CLUSTERS - 1)
            _plain(builder, group, 0, asking=asked, cluster=cluster, priority=_CRITICAL)
            total += asked
    return ExpectedResult(unmet=None, acquired=0, preempted=total)


def _one_to_one(builder: Builder, machines: int) -> ExpectedResult:
    for group in builder.groups:
        rack = group.racks[0]
        unit = rack.type.allocatable
        for _ in range(len(group)):
            builder.need(
                rack,
                unit,
                unit,
                priority=builder.rng.choice(_PRIORITIES),
                cluster=builder.cluster(),
                group=f"j-{len(builder.needs):06d}",
            )
    return ExpectedResult(acquired=machines)


def _gangs(builder: Builder, machines: int) -> ExpectedResult:
    needs = need_count("gangs", machines)
    gangs, fresh, kinds = needs * 93 // 100, 0, set[tuple[str, int, int]]()
    while len(builder.needs) < gangs:
        place = builder.rng.randrange(len(builder.groups))
        group, per_machine = builder.groups[place], builder.rng.choice((1, 2, 4))
        members = min(builder.rng.randint(3, 12), gangs - len(builder.needs))
        hosts, cluster = -(-members // per_machine), builder.cluster()
        # Jobs alike in cluster, shape and size are one row: a second set of them would join it.
        if group.left() < hosts or (cluster, place, per_machine) in kinds:
            continue
        kinds.add((cluster, place, per_machine))
        is_new = len(kinds) % 2 == 0
        fresh += hosts if is_new else 0
        _small_gangs(builder, group, members, per_machine, cluster, is_new=is_new)
    for group, count in builder.shares(needs - gangs, spare=0.1):
        need, segments = _plain(builder, group, count)
        builder.bind(segments, need)
    return ExpectedResult(acquired=fresh)


def _small_gangs(
    builder: Builder, group: Group, members: int, per_machine: int, cluster: str, *, is_new: bool
) -> None:
    rack = group.racks[0]
    pod = share_of(rack.type.allocatable, 2 * per_machine)
    first = len(builder.needs)
    for i in range(members):
        builder.need(
            rack, times(pod, 2), pod, priority=1_000, cluster=cluster, together=True,
            group=f"job-{first + i:06d}",
        )  # fmt: skip
    segments = group.take(-(-members // per_machine))
    if is_new:
        builder.leave(segments)
        return
    machine = 0
    for segment in segments:
        for i in range(segment.count):
            own = Segment(segment.rack, segment.start + i, 1)
            builder.bind([own], first + machine * per_machine)
            machine += 1


def _gangs_whole(builder: Builder, machines: int) -> ExpectedResult:
    needs = need_count("gangs-whole", machines)
    gangs, fresh = needs // 4, 0
    while len(builder.needs) < gangs:
        group, size = builder.rng.choice(builder.groups), builder.rng.randint(2, 8)
        segment = group.take_together(size)
        if segment is None:
            continue
        unit = segment.rack.type.allocatable
        need = builder.need(
            segment.rack, times(unit, size), unit, priority=1_000, cluster=builder.cluster(),
            together=True, group=f"job-{len(builder.needs):06d}",
        )  # fmt: skip
        if need % 2:
            fresh += size
            builder.leave([segment])
        else:
            builder.bind([segment], need)
    # What is kept back of every rack is more than the largest gang, so that none is in the way.
    for group, count in builder.shares(needs - gangs, spare=0.2):
        need, segments = _plain(builder, group, count)
        builder.bind(segments, need)
    return ExpectedResult(acquired=fresh)


def _plain(
    builder: Builder,
    group: Group,
    count: int,
    *,
    asking: int | None = None,
    cluster: str | None = None,
    priority: int | None = None,
    ordered: bool = False,
) -> tuple[int, list[Segment]]:
    """A need for whole machines of a group, and machines for it.

    One in three names the zone as well, one in three no pool. `ordered` serves those first that
    can be served in fewer ways, so that no one takes what another alone can use.
    """
    rng, rack = builder.rng, group.racks[0]
    scope = Scope(rng.randrange(len(Scope))) if group.scope is None else group.scope
    zone = rng.choice(group.racks).zone if scope is Scope.ZONE else None
    if group.scope is None and zone is not None and (group.left(zone) < count or not count):
        scope, zone = Scope.POOL, None
    segments = group.take(count, zone)
    per_machine = rng.choice((1, 2, 4, 8) if asking is None else (1, 2))
    unit = share_of(rack.type.allocatable, per_machine)
    units = (count if asking is None else asking) * per_machine
    if asking is None:
        units -= rng.randrange(per_machine)
    if priority is None:
        priority = (100_000, 1_000, 0)[scope] if ordered else rng.choice(_PRIORITIES)
    need = builder.need(
        rack,
        times(unit, units),
        unit,
        priority=priority,
        cluster=cluster or builder.cluster(),
        pool=scope is not Scope.ANYWHERE,
        zone=zone,
    )
    return need, segments


WORKLOADS: Final[Mapping[str, Callable[[Builder, int], ExpectedResult]]] = MappingProxyType(
    {
        "steady": _steady,
        "gangs": _gangs,
        "gangs-whole": _gangs_whole,
        "cold": _cold,
        "reclaim": _reclaim,
        "preempt": _preempt,
        "one-to-one": _one_to_one,
    }
)
