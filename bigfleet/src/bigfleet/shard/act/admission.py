"""Whether an order still fits the world when it is handed over.

A decision takes a while, and meanwhile machines move: an order for one that is not where it was is
dropped and derived again. Looked up in columns, because a cycle may bring thousands at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bigfleet.decision import ActionKind
from bigfleet.model.columns import KEPT_OUT, Flag
from bigfleet.shard.act.backoff import BackoffTable
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import STARTS_IN, Order

K = ActionKind
Fit = tuple[str, ActionKind]


class Admission:
    """What is refused at the door."""

    def __init__(
        self, book: Book, failures: BackoffTable, offers_delete: Callable[[str], bool]
    ) -> None:
        self._book = book
        self._failures = failures
        self._offers_delete = offers_delete
        self.fenced: set[str] = set()
        """Providers that have seen a newer process of this shard."""

    def fitting(self, orders: Sequence[Order]) -> set[Fit]:
        """The machines, and what may be done to them, of orders that still fit."""
        fleet = self._book.snapshot()
        found = [(order, self._book.row(order.machine)) for order in orders]
        found = [(order, row) for order, row in found if row >= 0]
        rows = [row for _, row in found]
        states, flags = fleet.state[rows].tolist(), fleet.flags[rows].tolist()
        clusters = fleet.cluster[rows].tolist()
        number = self._book.symbols.clusters.find
        fitting: set[Fit] = set()
        for (order, _), state, flag, cluster in zip(found, states, flags, clusters, strict=True):
            leaving, kind = bool(flag & Flag.LEAVING), order.kind
            if kind in (K.RECLAIM, K.PREEMPT):
                fits = not leaving and cluster == number(order.cluster)
            elif kind is K.KEEP:
                fits = leaving and not flag & Flag.FINAL
            elif kind is K.DELETE:
                fits = self._offers_delete(order.provider)
            else:
                fits = not flag & KEPT_OUT
            if fits and state == STARTS_IN[kind] and self._is_free(order):
                fitting.add((order.machine, kind))
        return fitting

    def _is_free(self, order: Order) -> bool:
        # What calls a drain off reaches no provider, so neither fence nor failure is in its way.
        return not self._book.busy(order.machine) and (
            order.kind is K.KEEP
            or (order.provider not in self.fenced and not self._failures.keep_off(order))
        )
