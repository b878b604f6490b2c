"""What shards could give, as columns: a row per shard and kind, counted down as moves are planned.

From what a shard reports is taken off, before anybody else is thought of: machines that moves under
way will take, and machines that its own unmet demand can use. What is left of its Idle machines it
gives beyond a margin, and so many per round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.planning.catalogue import I64, Catalogue, MachineKind, Place
from bigfleet.coordinator.rebalance.planning.report_reader import ReportedShortfall, ShardView
from bigfleet.coordinator.state import Move, MovePhase, Pool, Tier

_NS: Final = 1_000_000_000
_FEW: Final = 64
_NO_LIMIT: Final = 1 << 40


class SpareSupply:
    """Rows of all shards, shard by shard."""

    def __init__(
        self,
        catalogue: Catalogue,
        views: Sequence[ShardView],
        moves: Iterable[Move],
        quotas: Mapping[Pool, Mapping[str, int]],
        now: int,
    ) -> None:
        self.catalogue, self.views = catalogue, views
        self.number = {view.shard: number for number, view in enumerate(views)}
        lengths = [len(view.kinds) for view in views]
        self._start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        self.shard: I64 = np.repeat(np.arange(len(views)), lengths).astype(np.int64)
        self.kind: I64 = _joined([view.kinds for view in views])
        self.idle: I64 = _joined([view.idle for view in views])
        self.speculative: I64 = _joined([view.speculative for view in views])
        total = np.bincount(self.shard, self.idle, len(views)).astype(np.int64)
        self.budget: I64 = np.where(total > 0, np.maximum(1, total * rules.ROUND_SHARE), 0).astype(
            np.int64
        )
        """Idle machines each shard may give in this round."""
        self._quota = _Slices(views, catalogue, quotas)
        self._slice: I64 = self._quota.of_rows(self.shard, self.kind)
        self._expect(moves, now)
        self.all_idle: I64 = self.idle.copy()
        """Before anything was taken for unmet demand; margins are of this."""
        self.all_slots: I64 = self.speculative.copy()
        for number, view in enumerate(views):
            self._reserve(number, view.shortfalls)
        self._by_kind = np.argsort(self.kind, kind="stable")
        kinds = len(catalogue.kinds)
        self._kind_start = np.searchsorted(self.kind[self._by_kind], np.arange(kinds + 1))
        self._there = np.diff(self._kind_start) > 0
        self._rows: dict[int, I64] = {}

    # -- reading ---------------------------------------------------------------------------------

    def rows(self, shape: int) -> I64:
        """The rows whose machines fit, shard by shard."""
        rows = self._rows.get(shape)
        if rows is None:
            kinds = np.flatnonzero(self.catalogue.fits(shape) & self._there)
            if len(kinds) <= _FEW:
                start = self._kind_start
                parts = [self._by_kind[start[kind] : start[kind + 1]] for kind in kinds.tolist()]
                rows = np.sort(_joined(parts))
            else:
                rows = np.flatnonzero(self.catalogue.fits(shape)[self.kind])
            self._rows[shape] = rows
        return rows

    def per_shard(self, rows: I64, column: I64) -> I64:
        """A column's sum over these rows, for each shard."""
        return np.bincount(self.shard[rows], column[rows], len(self.views)).astype(np.int64)

    def beyond_margin(self, rows: I64) -> I64:
        """Per shard, how many Idle machines of these rows it could give, whatever the round."""
        margin = np.maximum(1, np.ceil(self.per_shard(rows, self.all_idle) * rules.MARGIN))
        left: I64 = (self.per_shard(rows, self.idle) - margin).astype(np.int64)
        return np.maximum(left, 0)

    def unused(self, rows: I64) -> I64:
        """Per shard, how many Speculative machines of these rows may go; at most that many."""
        may = np.minimum(self.speculative[rows], self._quota.left[self._slice[rows]])
        return np.bincount(self.shard[rows], may, len(self.views)).astype(np.int64)

    def kind_of(self, row: int) -> MachineKind:
        """What a row's machines are."""
        return self.catalogue.kinds[int(self.kind[row])]

    def there(self, rows: I64) -> I64:
        """Per shard, unused machines of these rows, whether they may go or not."""
        return self.per_shard(rows, self.all_idle) + self.per_shard(rows, self.all_slots)

    def spare_of(self, rows: I64, tier: Tier) -> list[int]:
        """Rows with something left; most first."""
        if tier is Tier.IDLE:
            left = self.idle[rows]
        else:
            left = np.minimum(self.speculative[rows], self._quota.left[self._slice[rows]])
        order = np.argsort(-left, kind="stable")
        found: list[int] = rows[order[left[order] > 0]].tolist()
        return found

    def left(self, row: int, tier: Tier) -> int:
        """What a row has now: rows of one pool take from the same quota."""
        if tier is Tier.IDLE:
            return int(self.idle[row])
        return min(int(self.speculative[row]), int(self._quota.left[self._slice[row]]))

    # -- taking ----------------------------------------------------------------------------------

    def take(self, row: int, tier: Tier, count: int) -> None:
        """A move will take so many; Speculative ones with their quota."""
        if tier is Tier.IDLE:
            self.idle[row] -= count
            self.budget[self.shard[row]] -= count
        else:
            self.speculative[row] -= count
            self._quota.use(int(self._slice[row]), count)

    def _expect(self, moves: Iterable[Move], now: int) -> None:
        """Take off what earlier moves will take or have taken."""
        rows_at: dict[tuple[int, Place], list[int]] = {}
        donors: set[int] = set()
        relevant = [move for move in moves if move.donor in self.number]
        for move in relevant:
            if move.phase is MovePhase.PLANNED:
                donors.add(self.number[move.donor])
        for donor in donors:
            for row in range(self._start[donor], self._start[donor + 1]):
                rows_at.setdefault((donor, self.kind_of(row).place), []).append(row)
        for move in relevant:
            donor = self.number[move.donor]
            if _was_idle(move) and now - move.created_at < rules.ROUND_SECONDS * _NS:
                self.budget[donor] -= min(int(self.budget[donor]), move.count)
            if move.tier is Tier.QUOTA and move.phase in (
                MovePhase.PLANNED,
                MovePhase.DONOR_RELEASED,
            ):
                # The slice follows once the recipient has the machines.
                pool = (move.wish.provider, move.wish.region)
                self._quota.use(self._quota.number(move.donor, pool), move.count)
            if move.phase is MovePhase.PLANNED and move.tier is not Tier.PREEMPT:
                column = self.idle if move.tier is Tier.IDLE else self.speculative
                left = move.count
                for row in rows_at.get((donor, _place(move)), ()):
                    taken = min(left, int(column[row]))
                    column[row] -= taken
                    left -= taken

    def _reserve(self, number: int, shortfalls: Sequence[ReportedShortfall]) -> None:
        """Keep what a shard's own unmet demand can use, Idle machines first."""
        rows = slice(int(self._start[number]), int(self._start[number + 1]))
        live = np.flatnonzero((self.idle[rows] > 0) | (self.speculative[rows] > 0)) + rows.start
        if not shortfalls or not len(live):
            return
        kinds = self.kind[live]
        idle, speculative = self.idle[live].tolist(), self.speculative[live].tolist()
        for shortfall in sorted(
            shortfalls, key=lambda one: (-one.priority, -one.age, one.fingerprint)
        ):
            fitting = self.catalogue.fits(shortfall.shape)[kinds].nonzero()[0].tolist()
            missing = dict(shortfall.deficit) if fitting else {}
            for column in (idle, speculative):
                for row in fitting:
                    if not missing:
                        break
                    if column[row]:
                        kind = self.catalogue.kinds[kinds[row]]
                        kept = min(column[row], kind.hosting(missing))
                        column[row] -= kept
                        missing = less(missing, kind, kept)
        self.idle[live], self.speculative[live] = idle, speculative


class _Slices:
    """Quota that shards have and do not use, as far as their reports tell.

    A report says how many slots of each pool there are, in all states, and which Speculative ones
    could go; the others count as used, so that what is unused is never overstated.
    """

    def __init__(
        self,
        views: Sequence[ShardView],
        catalogue: Catalogue,
        quotas: Mapping[Pool, Mapping[str, int]],
    ) -> None:
        self._catalogue, self._shards = catalogue, [view.shard for view in views]
        self._numbers: dict[tuple[str, Pool], int] = {}
        left: list[int] = []
        for view in views if quotas else ():
            used = dict(view.slots)
            for number, count in zip(view.kinds.tolist(), view.speculative.tolist(), strict=True):
                kind = catalogue.kinds[number]
                pool = (kind.provider, kind.region)
                used[pool] = used.get(pool, 0) - count
            for pool, slices in quotas.items():
                self._numbers[view.shard, pool] = len(left)
                left.append(max(0, slices.get(view.shard, 0) - max(0, used.get(pool, 0))))
        self.left: I64 = np.array([*left, _NO_LIMIT], np.int64)
        """What is unused of each; the last stands for pools without a limit."""

    def number(self, shard: str, pool: Pool) -> int:
        """Where a shard's slice of a pool is kept."""
        return self._numbers.get((shard, pool), len(self.left) - 1)

    def of_rows(self, shards: I64, kinds: I64) -> I64:
        """The same for each row."""
        if not self._numbers:
            return np.zeros(len(shards), np.int64)
        pools: dict[Pool, int] = {}
        pool_of = np.array(
            [
                pools.setdefault((kind.provider, kind.region), len(pools))
                for kind in self._catalogue.kinds
            ],
            np.int64,
        )
        numbers = np.array(
            [[self.number(shard, pool) for pool in pools] for shard in self._shards], np.int64
        ).reshape(len(self._shards), len(pools))
        found: I64 = numbers[shards, pool_of[kinds]]
        return found

    def use(self, number: int, count: int) -> None:
        """So much goes with machines."""
        if number < len(self.left) - 1:
            self.left[number] = max(0, int(self.left[number]) - count)


def less(missing: Mapping[str, int], kind: MachineKind, count: int) -> dict[str, int]:
    """What is missing once there are so many machines of a kind."""
    offered = kind.allocatable
    return {
        name: amount - count * offered.get(name, 0)
        for name, amount in missing.items()
        if amount > count * offered.get(name, 0)
    }


def _joined(parts: Sequence[I64]) -> I64:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def _place(move: Move) -> Place:
    wish = move.wish
    return (wish.instance_type, wish.zone, wish.provider, wish.region)


def _was_idle(move: Move) -> bool:
    """Whether a move took, or will take, Idle machines."""
    took_none = move.phase is MovePhase.ABANDONED and not move.machine_ids
    return move.tier is Tier.IDLE and not took_none
