"""What matches a need, counted by class: an upper bound that rules trials out, and who holds it.

A trial is a whole decision. Most can be ruled out by counting: where all machines that match
together, used or not, are too few, no decision can make the need met. The bound errs on the
side of a trial; it never says "too few" where a decision could find enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Plan
from bigfleet.decision.matcher import column_mask
from bigfleet.explanation.situation import Situation
from bigfleet.model import CapacityType, MachineState, Need, Profile, Requirement
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.columns.machines import KEPT_OUT, Flag
from bigfleet.model.demand.taints import Taint, Toleration, untolerated
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.match_set import MatchSet

B = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
S = MachineState

_ELASTIC: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)
_MILLI: Final = 1000
_EVERY_TAINT: Final = (Toleration.of(operator="Exists"),)
_STATES: Final = max(S) + 1


@dataclass(frozen=True)
class IgnoredLimits:
    """Which limits of the situation are left out of a count."""

    stock: bool = False
    quota: bool = False
    spend: bool = False


@dataclass
class SupplyCounts:
    """Counts over the machines of one situation; keeps what each requirement leaves."""

    situation: Situation
    _by_class: dict[Requirement | MatchSet, B] = field(default_factory=dict)
    _by_machine: dict[Requirement, B] = field(default_factory=dict)
    _counts: dict[tuple[frozenset[Requirement], MatchSet], I64] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fleet = self.situation.fleet
        out = KEPT_OUT | Flag.ENDING
        self._usable: B = (
            (fleet.state > 0) & (fleet.state != S.FAILED) & ((fleet.flags & int(out)) == 0)
        )
        table = fleet.classes
        self._offers = [
            {
                name: _MILLI * whole + milli
                for name, whole, milli in zip(fleet.symbols.resources, w, m, strict=False)
            }
            for w, m in zip(table.whole.tolist(), table.milli.tolist(), strict=True)
        ]
        cooling = self.situation.carry.cooling(self.situation.now)
        self._cooling = [table.offerings[o] in cooling for o in table.offering.tolist()]
        self._left = self._quota_left()
        self._spend = self._spend_left()

    # -- what matches ----------------------------------------------------------------------------

    def matching(self, need: Need) -> B:
        """Machines that hold all requirements but Same, whatever their size.

        A gang that fits on one machine is served without Same, so it must not rule anything out.
        """
        fleet = self.situation.fleet
        found = self._usable & self._admitted(self._taken(need))[fleet.cls]
        for requirement in need.profile.without_same().requirements:
            if requirement.key in fleet.topology:
                found = found & self._column(requirement)
            else:
                found = found & self._classes(requirement)[fleet.cls]
        return found

    def untolerated(self, need: Need) -> list[Taint]:
        """Taints that keep machines from the need, where its cluster states tolerations."""
        known = self._taken(need).tolerations
        if known is None:
            return []
        tolerant = replace(need, profile=replace(need.profile, tolerations=_EVERY_TAINT))
        known_taints = self.situation.fleet.classes.taints
        taints = {taint for c in self.present(tolerant) for taint in known_taints[c]}
        return [taint for taint in untolerated(sorted(taints), known) if taint.binds]

    def _taken(self, need: Need) -> MatchSet:
        """What of a machine beyond requirements counts for the need; what it has is not limited."""
        fact = self.situation.demand.facts.get(need.cluster, ClusterFacts())
        return MatchSet(tolerations=need.profile.tolerations if fact.tolerations_stated else None)

    def _admitted(self, match_set: MatchSet) -> B:
        if match_set not in self._by_class:
            table = self.situation.fleet.classes
            matches = map(match_set.match, table.labels, table.taints)
            self._by_class[match_set] = np.array([match > 0 for match in matches], np.bool_)
        return self._by_class[match_set]

    def counts(self, need: Need) -> I64:
        """[class, state]: machines that hold all requirements but Same, whatever their size."""
        key = frozenset(need.profile.without_same().requirements), self._taken(need)
        found = self._counts.get(key)
        if found is None:
            fleet, mask = self.situation.fleet, self.matching(need)
            places = fleet.cls[mask].astype(np.int64) * _STATES + fleet.state[mask]
            size = len(fleet.classes)
            found = np.bincount(places, minlength=size * _STATES).reshape(size, _STATES)
            self._counts[key] = found
        return found

    def gives(self, need: Need, cls: int) -> dict[str, int]:
        """What a machine of this class gives to the need; nothing where it does not suit."""
        offer = self.offer(need, cls)
        demanded = [name for name, amount in need.aggregate.items() if amount > 0]
        if any(offer[name] < amount for name, amount in need.min_unit.items()):
            return {}
        if any(offer[name] <= 0 for name in demanded):
            return {}
        return self._counted(need, offer)

    def offer(self, need: Need, cls: int) -> dict[str, int]:
        fact, known = self.situation.demand.facts.get(need.cluster), self._offers[cls]
        overhead: Mapping[str, int] = {} if fact is None else fact.overhead
        names = {*need.aggregate, *need.min_unit}
        return {n: max(0, known.get(n, 0) - overhead.get(n, 0)) for n in names}

    def _counted(self, need: Need, offer: Mapping[str, int]) -> dict[str, int]:
        """What counts of an offer: whole pieces where the need is a whole number of them."""
        demanded = [name for name, amount in need.aggregate.items() if amount > 0]
        if is_uniform_multiple(need.aggregate, need.min_unit) is None:
            return {name: offer[name] for name in demanded}
        units = min(offer[n] // amount for n, amount in need.min_unit.items() if amount > 0)
        return {name: units * need.min_unit[name] for name in demanded}

    def offered(self, need: Need) -> dict[str, int]:
        """Per resource it asks for: the most that one machine that matches offers."""
        most: dict[str, int] = dict.fromkeys(asked_for(need), 0)
        for c in self.present(need):
            offer = self.offer(need, c)
            most = {name: max(amount, offer[name]) for name, amount in most.items()}
        return most

    def offered_anywhere(self, need: Need) -> dict[str, int]:
        """The same over all machines, whatever the need requires of them."""
        return self.offered(replace(need, profile=Profile.of(tolerations=_EVERY_TAINT)))

    def fits_somewhere(self, need: Need) -> bool:
        """Whether some machine that matches is as large as a piece, in all that any offers."""
        known = [name for name, amount in self.offered(need).items() if amount]
        unit = {name: need.min_unit.get(name, 0) for name in known}
        offers = (self.offer(need, c) for c in self.present(need))
        return any(all(offer[n] >= amount for n, amount in unit.items()) for offer in offers)

    def present(self, need: Need) -> list[int]:
        found: list[int] = np.flatnonzero(self.counts(need).any(axis=1)).tolist()
        return found

    def total(self, need: Need) -> dict[str, int]:
        """What all machines that match would give together, in whatever use they are."""
        total: Counter[str] = Counter()
        counts = self.counts(need).sum(axis=1)
        for c in np.flatnonzero(counts).tolist():
            for name, amount in self.gives(need, c).items():
                total[name] += int(counts[c]) * amount
        return dict(total)

    # -- what a decision could use at most --------------------------------------------------------

    def may_suffice(self, need: Need, lifted: IgnoredLimits) -> bool:
        """False only where no decision could make the need met."""
        counts = self.counts(need)
        total: Counter[str] = Counter()
        for c in self.present(need):
            give = self.gives(need, c)
            usable = self._at_most(need, c, counts[c], lifted)
            if not give:
                # What its cluster has already also counts where it is too small for a piece.
                give = self._counted(need, self.offer(need, c))
                usable = int(counts[c].sum() - counts[c][S.SPECULATIVE] - counts[c][S.IDLE])
            for name, amount in give.items():
                total[name] += usable * amount
        return all(total[name] >= amount for name, amount in need.aggregate.items())

    def _at_most(self, need: Need, c: int, counts: I64, lifted: IgnoredLimits) -> int:
        """Machines of a class that could serve the need, limits taken one by one."""
        slots = int(counts[S.SPECULATIVE])
        others = int(counts.sum()) - slots
        table = self.situation.fleet.classes
        if need.profile.interruption.pinned and table.probability[c] > 0:
            # What is stamped for it already is kept, so bound machines may count.
            return others - int(counts[S.IDLE])
        if not lifted.stock and self._cooling[c]:
            slots = 0
        left = self._left.get(int(table.pool[c]))
        if not lifted.quota and left is not None:
            slots = min(slots, max(0, left))
        price = int(table.price[c]) if table.capacity_type[c] in _ELASTIC else 0
        if not lifted.spend and self._spend is not None and price > 0:
            slots = min(slots, max(0, self._spend // price))
        return others + slots

    # -- who holds it ----------------------------------------------------------------------------

    def holders(self, need: Need, plan: Plan, rows: Collection[int]) -> dict[int, int]:
        """Machines that would suit the need and are claimed by others: priority -> how many."""
        held = self._held(need, plan, rows)
        row_priority = self._row_priority(plan)
        found = Counter(row_priority[plan.claimed[held]].tolist())
        return dict(sorted(found.items()))

    def held_by_priority(self, need: Need, plan: Plan, rows: Collection[int]) -> dict[int, I64]:
        """The same by class: priority -> how many machines of each class."""
        held = self._held(need, plan, rows)
        held = held[self.situation.fleet.state[held] == S.CONFIGURED]
        priority = self._row_priority(plan)[plan.claimed[held]]
        cls, size = self.situation.fleet.cls[held], len(self.situation.fleet.classes)
        return {
            int(p): np.bincount(cls[priority == p], minlength=size)
            for p in np.unique(priority).tolist()
        }

    def _held(self, need: Need, plan: Plan, rows: Collection[int]) -> I64:
        suits = np.array(
            [bool(self.gives(need, c)) for c in range(len(self.situation.fleet.classes))], np.bool_
        )
        mine = np.isin(plan.claimed, list(rows))
        held = self.matching(need) & suits[self.situation.fleet.cls] & (plan.claimed >= 0) & ~mine
        found: I64 = np.flatnonzero(held)
        return found

    def _row_priority(self, plan: Plan) -> I64:
        v = plan.verdicts
        first = v.members[v.members_at[:-1]]
        priority: I64 = plan.demand.symbols.identity_column("priority")[plan.demand.identity[first]]
        return priority

    # -- parts -----------------------------------------------------------------------------------

    def _classes(self, requirement: Requirement) -> B:
        found = self._by_class.get(requirement)
        if found is None:
            labels = self.situation.fleet.classes.labels
            found = np.array([requirement.matches(known) for known in labels], np.bool_)
            self._by_class[requirement] = found
        return found

    def _column(self, requirement: Requirement) -> B:
        found = self._by_machine.get(requirement)
        if found is None:
            fleet = self.situation.fleet
            mask = column_mask(requirement, fleet)
            found = mask[fleet.topology[requirement.key] + 1] > 0
            self._by_machine[requirement] = found
        return found

    def _quota_left(self) -> dict[int, int]:
        """Per pool with a quota slice: how many more slots may leave Speculative."""
        situation, table = self.situation, self.situation.fleet.classes
        fleet = situation.fleet
        out = (fleet.state > 0) & (fleet.state != S.SPECULATIVE)
        used = np.bincount(table.pool[fleet.cls[out]], minlength=len(table.pools))
        return {
            number: situation.policy.quotas[pool] - int(used[number])
            for number, pool in enumerate(table.pools)
            if pool in situation.policy.quotas
        }

    def _spend_left(self) -> int | None:
        limit = self.situation.policy.spend_limit_micro
        return None if limit is None else limit - self.spent()

    def spent(self) -> int:
        """Micro-dollars per hour of elastic machines outside Speculative."""
        fleet = self.situation.fleet
        table = fleet.classes
        out = (fleet.state > 0) & (fleet.state != S.SPECULATIVE)
        elastic = np.isin(table.capacity_type, [int(kind) for kind in _ELASTIC])
        price = np.where(elastic, table.price, 0)
        return int(price[fleet.cls[out]].sum())


def asked_for(need: Need) -> list[str]:
    """The resources it asks for, in all or in its pieces."""
    amounts = (*need.aggregate.items(), *need.min_unit.items())
    return sorted({name for name, amount in amounts if amount > 0})
