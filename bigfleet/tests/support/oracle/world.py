"""One cycle of the oracle: machines, rows, and who holds what so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from bigfleet.decision.policy import Policy
from bigfleet.model import (
    LABEL_ARCH,
    LABEL_INSTANCE_TYPE,
    LABEL_OS,
    CapacityType,
    Machine,
    MachineState,
    Need,
    RequirementOperator,
    Stamp,
    admits,
    matches_all,
    untolerated,
)
from bigfleet.model.facts import ClusterFacts
from plain_rules import matchable_labels

Vector = dict[str, int]
S = MachineState
ELASTIC = (CapacityType.ON_DEMAND, CapacityType.SPOT)


@dataclass
class Row:
    """One need as it is served in this cycle: plain, gang, or several gangs folded."""

    need: Need
    members: list[Need]
    folded: bool
    shrunk_at: int
    position: int = -1
    units: int | None = None
    claims: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    """Of those taken: Idle machines that were made for the row and counted in credit."""
    expected: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    domain: tuple[str, ...] | None = None
    chosen: bool = False
    satisfiable: bool = False
    candidates: list[tuple[tuple[str, ...], Fraction, bool]] = field(default_factory=list)
    picks: list[str] = field(default_factory=list)
    moved_in: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    done: bool = False
    gangs: list[Row] = field(default_factory=list)
    parent: Row | None = None

    @property
    def gang_keys(self) -> tuple[str, ...]:
        return tuple(r.key for r in self.need.profile.same)

    @property
    def is_gang(self) -> bool:
        return bool(self.need.profile.same)

    @property
    def keys(self) -> set[tuple[str, str, str]]:
        return {m.stamp_key for m in self.members}

    @property
    def idents(self) -> set[tuple[object, ...]]:
        return {ident_of_need(m) for m in self.members}

    @property
    def demanded(self) -> list[str]:
        return [d for d, v in self.need.aggregate.items() if v > 0]


def ident_of_need(need: Need) -> tuple[object, ...]:
    return (*need.stamp_key, need.profile.fingerprint, need.size_class)


def ident_of_stamp(stamp: Stamp) -> tuple[object, ...]:
    return (*stamp.key, stamp.fingerprint, stamp.size_class)


@dataclass
class World:
    """Everything one cycle reads and writes."""

    machines: dict[str, Machine]
    rows: list[Row]
    facts: Mapping[str, ClusterFacts]
    policy: Policy
    now: int
    cooling: set[tuple[str, str, str, CapacityType]]
    drain_seconds: Mapping[tuple[str, str, str, CapacityType], float]
    claimed_by: dict[str, Row] = field(default_factory=dict)
    taken_by: dict[str, Row] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    restamped: dict[str, tuple[Row, Stamp, int | None]] = field(default_factory=dict)
    """Per machine: the row, the stamp, and the sequence number where it keeps the one it has."""
    turns: dict[str, int] = field(default_factory=dict)
    """Per machine: the place of its new stamp in the order in which stamps were given."""
    stamps_given: int = 0
    preempted: dict[str, tuple[Row, int]] = field(default_factory=dict)
    phantom: set[str] = field(default_factory=set)
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    spend: int = 0

    # -- facts about a machine -------------------------------------------------------------

    def fact(self, cluster: str) -> ClusterFacts:
        return self.facts.get(cluster, ClusterFacts(reported=False))

    def ending(self, m: Machine) -> bool:
        return m.interruption_at_ns > 0

    def usable(self, m: Machine) -> bool:
        """Not excluded, not about to end, not a phantom."""
        return not (m.is_kept_out or self.ending(m) or m.id in self.phantom)

    def counts_for(self, m: Machine) -> str:
        """The cluster this machine counts for, or empty."""
        if not self.usable(m) or (m.leaving is not None and m.id not in self.kept_ids()):
            return ""
        if m.state in (S.CONFIGURED, S.CONFIGURING):
            return m.cluster
        if m.state is S.CREATING and m.stamp is not None:
            return m.stamp.cluster
        return ""

    def kept_ids(self) -> set[str]:
        return {mid for row in self.all_rows() for mid in row.kept}

    def all_rows(self) -> list[Row]:
        return [r for row in self.rows for r in (row, *row.gangs)]

    def offer(self, row: Row, m: Machine) -> Vector:
        """What the machine gives to the row's cluster, before whole units are cut."""
        overhead = self.fact(row.need.cluster).overhead
        return {d: max(0, v - overhead.get(d, 0)) for d, v in m.effective_allocatable.items()}

    def covers_unit(self, row: Row, m: Machine) -> bool:
        offer = self.offer(row, m)
        return all(offer.get(d, 0) >= v for d, v in row.need.min_unit.items())

    def offers_all(self, row: Row, m: Machine) -> bool:
        offer = self.offer(row, m)
        return all(offer.get(d, 0) > 0 for d in row.demanded)

    def contribution(self, row: Row, m: Machine) -> Vector:
        offer = self.offer(row, m)
        if row.units is None:
            return {d: offer.get(d, 0) for d in row.demanded}
        units = min(offer.get(d, 0) // v for d, v in row.need.min_unit.items() if v > 0)
        return {d: units * row.need.min_unit[d] for d in row.demanded}

    def matches(self, row: Row, m: Machine) -> bool:
        """The machine may serve the row, also where it would not be taken for it now."""
        return matches_need(row.need, m, self.fact(row.need.cluster))

    def may_place(self, row: Row, m: Machine) -> bool:
        """The machine may be newly taken for the row."""
        if not self.matches(row, m):
            return False
        fact, asked = self.fact(row.need.cluster), row.need.profile.requirements
        named = {r.key for r in asked}
        if any(
            r.key == LABEL_INSTANCE_TYPE and r.operator is RequirementOperator.IN for r in asked
        ):
            return True
        labels = matchable_labels(m)
        for key, wanted, assumed in (
            (LABEL_ARCH, fact.default_arch, "amd64"),
            (LABEL_OS, fact.default_os, "linux"),
        ):
            if wanted and key not in named and labels.get(key, assumed) != wanted:
                return False
        return True

    def avoided(self, row: Row, m: Machine) -> bool:
        """The machine has a taint PreferNoSchedule that the row does not tolerate."""
        stated = self.fact(row.need.cluster).tolerations_stated
        return stated and bool(untolerated(m.taints, row.need.profile.tolerations))

    def domain_of(self, row: Row, m: Machine) -> tuple[str, ...] | None:
        labels = matchable_labels(m)
        values = tuple(labels.get(k) for k in row.gang_keys)
        return None if None in values else tuple(v for v in values if v is not None)

    # -- cost --------------------------------------------------------------------------------

    def loss(self, row: Row, m: Machine) -> int | None:
        """Expected interruption loss in micro-dollars; None is infinite."""
        bucket = row.need.profile.interruption
        if m.interruption_probability == 0:
            return 0
        return None if bucket.pinned else round(m.interruption_probability * bucket.micro)

    def cost(self, row: Row, m: Machine) -> int | None:
        loss = self.loss(row, m)
        return None if loss is None else m.price_micro + loss

    def cost_per_unit(self, row: Row, m: Machine, deficit: Vector) -> Fraction:
        cost = self.cost(row, m)
        assert cost is not None
        give = self.contribution(row, m)
        share = min(Fraction(give[d], v) for d, v in deficit.items() if v > 0)
        return cost / min(share, Fraction(1))

    def elastic_price(self, m: Machine) -> int:
        return m.price_micro if m.capacity_type in ELASTIC else 0

    def may_create(self, m: Machine, used: Mapping[tuple[str, str], int], spend: int) -> bool:
        """Quota and spend limit would allow this Speculative machine to be created."""
        return self.within_quota(m, used) and self.within_spend(m, spend)

    def within_quota(self, m: Machine, used: Mapping[tuple[str, str], int]) -> bool:
        key = (m.provider, m.region)
        quota = self.policy.quotas.get(key)
        return quota is None or used.get(key, 0) < quota

    def within_spend(self, m: Machine, spend: int) -> bool:
        limit, price = self.policy.spend_limit_micro, self.elastic_price(m)
        return limit is None or price == 0 or spend + price <= limit

    def in_stock(self, m: Machine) -> bool:
        return (m.provider, m.instance_type, m.zone, m.capacity_type) not in self.cooling

    # -- deficits ----------------------------------------------------------------------------

    def deficit(self, row: Row, without: str = "") -> Vector:
        left = {d: row.need.aggregate[d] for d in row.demanded}
        for mid in row.claims:
            if mid != without:
                left = self.minus(row, left, self.machines[mid])
        return left

    def restamp(self, row: Row, m: Machine, stamp: Stamp) -> None:
        """Give a machine a stamp with a number of its own, after all that were given before."""
        self.restamped[m.id] = (row, stamp, None)
        self.next_turn(m)

    def next_turn(self, m: Machine) -> None:
        """The machine's new stamp comes after all that were given before."""
        self.stamps_given += 1
        self.turns[m.id] = self.stamps_given

    def minus(self, row: Row, left: Vector, m: Machine) -> Vector:
        give = self.contribution(row, m)
        return {d: v - give[d] for d, v in left.items()}

    def reduces(self, row: Row, left: Vector, m: Machine) -> bool:
        give = self.contribution(row, m)
        return any(v > 0 and give[d] > 0 for d, v in left.items())

    # -- claims ------------------------------------------------------------------------------

    def claim(self, row: Row, m: Machine) -> None:
        assert m.id not in self.claimed_by, m.id
        self.claimed_by[m.id] = row
        row.claims.append(m.id)

    def unclaim(self, m: Machine) -> None:
        row = self.claimed_by.pop(m.id)
        for ids in (row.claims, row.held):
            if m.id in ids:
                ids.remove(m.id)

    def unnamed_members(self, row: Row) -> list[Need]:
        """Members that no claimed machine's stamp names, nor one of those served as a gang."""
        named = set()
        for mid in [*row.claims, *(mid for gang in row.gangs for mid in gang.claims)]:
            stamp = self.restamped[mid][1] if mid in self.restamped else self.machines[mid].stamp
            if stamp is not None:
                named.add(ident_of_stamp(stamp))
        return [m for m in row.members if ident_of_need(m) not in named]

    def member_for(self, row: Row) -> Need:
        """The member a newly given stamp names: the first that none names yet."""
        return next(iter(self.unnamed_members(row)), row.members[0])

    def owner(self, stamp: Stamp | None) -> Row | None:
        """The live row a stamp is for: the same fingerprint first, then the order."""
        if stamp is None:
            return None
        for row in self.rows:
            if ident_of_stamp(stamp) in row.idents:
                return row
        for row in self.rows:
            if stamp.key in row.keys:
                return row
        return None


def matches_need(need: Need, m: Machine, fact: ClusterFacts) -> bool:
    """Requirements hold, and where the cluster states tolerations no binding taint is left."""
    if not matches_all(need.profile.requirements, matchable_labels(m)):
        return False
    return not fact.tolerations_stated or admits(m.taints, need.profile.tolerations)


def covered(left: Vector) -> bool:
    return all(v <= 0 for v in left.values())


def penalty_rank(stamp: Stamp | None) -> int:
    """Absent and zero are the same value; an unstamped machine has none to protect."""
    return 1 if stamp is None else max(1, int(stamp.reclamation))
