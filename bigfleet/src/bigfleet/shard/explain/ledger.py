"""The shortfall ledger: what the last cycles left unmet, by profile, and for how long.

Rows of one profile are one entry, whatever cluster they belong to; their deficits add up. An
entry's age counts the ticks of the cycle's ticker that some of it has been unmet, the first one
being 1: cycles come at any pace, and a storm of roll-ups must not make a shortfall old. The ledger
is updated from a plan's columns; values are made only of what is reported. Reporting them is left
to the coordinator's client.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Plan
from bigfleet.model import Profile, Resources, add
from bigfleet.model.columns import Symbols
from bigfleet.observe.shard import ShortfallCounts

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

TICK_SECONDS: Final = 10.0
MOST_REPORTED: Final = 100
ESCALATES_ABOVE: Final = 5
_NEARLY: Final = 0.1
_MILLI: Final = 1000
_MOST_PROFILES: Final = 1 << 32
_AGES: Final = np.array([10, 60, 300])
_PRIORITIES: Final = np.array([100, 1_000, 1_000_000])
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One entry: the demand of one profile that stays unmet."""

    profile: Profile
    deficit: Resources
    min_unit: Resources
    """What each machine must be able to host: the greatest of the rows, per resource."""
    age_cycles: int
    clusters: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """The ledger's key."""
        return self.profile.fingerprint

    @property
    def topology_constrained(self) -> bool:
        """Wants one place for all: never served across shards."""
        return bool(self.profile.same)


@dataclass(frozen=True, eq=False)
class UnmetPairs(Set[tuple[str, str]]):
    """Clusters and fingerprints of profiles; kept as numbers, because there may be many."""

    symbols: Symbols
    numbers: frozenset[int]

    def __contains__(self, pair: object) -> bool:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            return False
        cluster, profile = self.symbols.clusters.find(pair[0]), self.symbols.find_profile(pair[1])
        return min(cluster, profile) >= 0 and cluster * _MOST_PROFILES + profile in self.numbers

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for number in self.numbers:
            cluster, profile = divmod(number, _MOST_PROFILES)
            yield self.symbols.clusters[cluster], self.symbols.profiles[profile].fingerprint

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class _Entries:
    """The unmet rows of a plan, and the profile each belongs to. The oldest first."""

    plan: Plan
    rows: I64
    profile: I64
    """Per entry."""
    age: I64
    priority: I64
    entry_of: I64
    """Per row."""


class Ledger:
    """Kept over all cycles of a process."""

    def __init__(self, tick_seconds: float = TICK_SECONDS) -> None:
        self._tick = tick_seconds
        self._symbols: Symbols | None = None
        self._ages: I64 = np.zeros(0, np.int64)
        self._since: F64 = np.zeros(0)
        """Per number of a profile: since when it is unmet; nothing where its age is 0."""
        self._entries: _Entries | None = None

    def update(self, plan: Plan, seconds: float) -> bool:
        """Take a cycle finished at a time; whether an entry is now old enough to escalate."""
        self._follow(plan.demand.symbols)
        rows = np.flatnonzero(~plan.verdicts.satisfied)
        stands = _representatives(plan, rows)
        found, first, entry_of = np.unique(
            plan.demand.profile[stands], return_index=True, return_inverse=True
        )
        profile: I64 = found.astype(np.int64)
        known, ages = self._aged(profile, len(plan.demand.symbols.profiles), seconds)
        identity = plan.demand.identity[stands[first]]
        priority = plan.demand.symbols.identity_column("priority")[identity]
        self._entries = _Entries(plan, rows, profile, ages[profile], priority, entry_of.reshape(-1))
        if len(profile):
            _log.warning(
                "shortfalls detected",
                extra={"count": len(profile), "top_fingerprints": self._oldest(3)},
            )
        return bool(((ages > ESCALATES_ABOVE) & (known <= ESCALATES_ABOVE)).any())

    def _aged(self, profile: I64, count: int, seconds: float) -> tuple[I64, I64]:
        """The ages before and after a cycle that left these profiles unmet."""
        known, since, ages = np.zeros(count, np.int64), np.zeros(count), np.zeros(count, np.int64)
        known[: len(self._ages)] = self._ages
        since[: len(self._since)] = self._since
        since[profile] = np.where(known[profile] > 0, since[profile], seconds)
        # A tick is never quite as long as it should be.
        ticks = np.floor((seconds - since[profile]) / self._tick + _NEARLY)
        ages[profile] = 1 + ticks.astype(np.int64)
        self._ages, self._since = ages, since
        return known, ages

    def __len__(self) -> int:
        return 0 if self._entries is None else len(self._entries.profile)

    def counts(self) -> ShortfallCounts:
        """How many entries there are, by priority class and by age."""
        entries = self._entries
        if entries is None or not len(entries.profile):
            return ShortfallCounts()
        classes = np.bincount(np.searchsorted(_PRIORITIES, entries.priority, "right"), minlength=4)
        ages = np.bincount(np.searchsorted(_AGES, entries.age, "right"), minlength=4)
        by_priority = tuple(classes[::-1].tolist())
        return ShortfallCounts(len(entries.profile), by_priority, tuple(ages.tolist()))

    @property
    def ages(self) -> I64:
        """Per number of a profile: for how many ticks it has been unmet; 0 when it is met.

        As of the last update; later ones leave this array alone.
        """
        return self._ages

    def unmet(self) -> UnmetPairs:
        """Which cluster lacks something of which profile, by its fingerprint."""
        if self._entries is None:
            return UnmetPairs(Symbols(), frozenset())
        plan = self._entries.plan
        demand, symbols, verdicts = plan.demand, plan.demand.symbols, plan.verdicts
        rows = verdicts.members[np.repeat(~verdicts.satisfied, np.diff(verdicts.members_at))]
        cluster = symbols.identity_column("cluster")[demand.identity[rows]]
        pairs = cluster * _MOST_PROFILES + demand.profile[rows]
        return UnmetPairs(symbols, frozenset(pairs.tolist()))

    def reported(self, most: int = MOST_REPORTED) -> list[Shortfall]:
        """The entries for the coordinator: highest priority first, then the oldest."""
        entries = self._entries
        if entries is None:
            return []
        order = np.lexsort((entries.profile, -entries.age, -entries.priority))[:most]
        return [self._shortfall(entries, int(entry)) for entry in order]

    # -- making values ---------------------------------------------------------------------------

    def _oldest(self, most: int) -> list[str]:
        entries = self._entries
        assert entries is not None
        profiles = entries.plan.demand.symbols.profiles
        order = np.lexsort((entries.profile, -entries.priority, -entries.age))[:most]
        return [profiles[int(entries.profile[entry])].fingerprint for entry in order]

    def _shortfall(self, entries: _Entries, entry: int) -> Shortfall:
        plan = entries.plan
        demand, symbols = plan.demand, plan.demand.symbols
        rows = entries.rows[entries.entry_of == entry]
        stands = _representatives(plan, rows)
        clusters = symbols.identity_column("cluster")[demand.identity[stands]]
        unit = [
            max(int(w) * _MILLI + int(m) for w, m in zip(whole_of, milli_of, strict=True))
            for whole_of, milli_of in zip(
                demand.unit[stands].T, demand.unit_milli[stands].T, strict=True
            )
        ]
        names = symbols.resources
        return Shortfall(
            profile=symbols.profiles[int(entries.profile[entry])],
            deficit=reduce(add, map(plan.missing, rows.tolist())),
            min_unit={names[d]: amount for d, amount in enumerate(unit) if amount},
            age_cycles=int(entries.age[entry]),
            clusters=tuple(sorted(symbols.clusters[int(c)] for c in np.unique(clusters))),
        )

    def _follow(self, symbols: Symbols) -> None:
        """Numbers of profiles mean something within one set of symbols; ages go with the names."""
        old, self._symbols = self._symbols, symbols
        if old is None or old is symbols:
            return
        ages, since = np.zeros(len(symbols.profiles), np.int64), np.zeros(len(symbols.profiles))
        before = zip(old.profiles, self._ages, self._since, strict=False)
        by_name = {p.fingerprint: (age, at) for p, age, at in before}
        for number, profile in enumerate(symbols.profiles):
            ages[number], since[number] = by_name.get(profile.fingerprint, (0, 0.0))
        self._ages, self._since = ages, since


def _representatives(plan: Plan, rows: I64) -> I64:
    """Per row of the plan, a row of the demand that stands for it."""
    return plan.verdicts.members[plan.verdicts.members_at[rows]]
