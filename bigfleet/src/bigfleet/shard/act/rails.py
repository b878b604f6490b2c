"""Rails between deciding and doing: how much may happen at once, and whether anything may.

    unheard as long as one provider was not listed since the start, no machine is taken from a
            cluster: the machines of that provider may already serve the demand
    cap     Reclaims per cluster and sliding window of 10 s, however fast cycles come
    limit   orders per cycle; the rest is derived again by the next cycle, which follows at once
    pause   nothing is executed; survives restarts. Dry-run: the same, with a line for each order

Functions over orders, and small memories beside them; the pause is the only one on disk. Where a
rail cuts, a gang goes through whole or not at all. Quotas and the spend limit are inputs of the
engine, not cuts after it. What an input of the engine and a cut share (the reclaim budget) is
worked out here once, so that both say the same.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.observe.process import Clock
from bigfleet.shard.act.held_back import DRY_RUN, PAUSED, UNHEARD
from bigfleet.shard.act.outcomes import counted_as
from bigfleet.shard.act.ports import ExecuteMetrics
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.state.pause import Pause

WINDOW_SECONDS: Final = 10.0
CAP_FRACTION: Final = 0.05
MAX_ACTIONS: Final = 8192
_MICRO: Final = 1_000_000
_TOGETHER: Final = frozenset({ActionKind.BOOTSTRAP, ActionKind.PROVISION, ActionKind.PREEMPT})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OrderSplit:
    """What a rail lets through and what it holds back, each in the order it came."""

    kept: list[Order]
    held: list[Order]


def units(orders: Iterable[Order]) -> list[list[Order]]:
    """Orders that go together: a gang's are one unit, at the place of its first, others alone."""
    found: list[list[Order]] = []
    gangs: dict[tuple[str, str, str], list[Order]] = {}
    for order in orders:
        stamp = order.stamp
        if stamp is None or not stamp.group or order.kind not in _TOGETHER:
            found.append([order])
            continue
        gang = (stamp.cluster, stamp.group, stamp.fingerprint)
        unit = gangs.get(gang)
        if unit is None:
            unit = gangs[gang] = []
            found.append(unit)
        unit.append(order)
    return found


def portions(orders: Iterable[Order], about: int) -> Iterator[list[Order]]:
    """Orders in portions of about so many; what goes together is in one of them."""
    portion: list[Order] = []
    for unit in units(orders):
        portion += unit
        if len(portion) >= about:
            yield portion
            portion = []
    if portion:
        yield portion


def limited(orders: Sequence[Order], most: int) -> OrderSplit:
    """At most so many, first come first served.

    A gang that alone is larger than the limit goes through when it is first: it would never fit.
    """
    if len(orders) <= most:
        return OrderSplit(list(orders), [])
    cut = OrderSplit([], [])
    for unit in units(orders):
        fits = len(cut.kept) + len(unit) <= most
        alone = not cut.kept and not cut.held and most > 0
        (cut.kept if fits or alone else cut.held).extend(unit)
    return cut


def not_taking(orders: Iterable[Order]) -> OrderSplit:
    """Nothing that takes a machine from a cluster, unless the machine is going anyway.

    What a gang waits for is held back with what is taken for it.
    """
    cut = OrderSplit([], [])
    for unit in units(orders):
        takes = any(map(_takes, unit))
        (cut.held if takes else cut.kept).extend(unit)
    return cut


def _takes(order: Order) -> bool:
    reclaims = order.kind is ActionKind.RECLAIM and not order.is_ending
    return reclaims or order.kind is ActionKind.PREEMPT


def cap_of(configured: int, fraction: float) -> int:
    """How many machines of a cluster may be reclaimed in one window."""
    return max(1, int(fraction * configured))


def capped(orders: Iterable[Order], budget: Mapping[str, int]) -> OrderSplit:
    """Reclaims within what their cluster has left; everything else goes through."""
    left = dict(budget)
    cut = OrderSplit([], [])
    for order in orders:
        if order.kind is not ActionKind.RECLAIM:
            cut.kept.append(order)
        elif left.get(order.cluster, 0) > 0:
            left[order.cluster] -= 1
            cut.kept.append(order)
        else:
            cut.held.append(order)
    return cut


def spend_limit_micro(dollars_per_hour: float | None) -> int | None:
    """The spend limit as the engine counts; None for no limit."""
    return None if dollars_per_hour is None else round(dollars_per_hour * _MICRO)


class ReclaimWindow:
    """When machines were reclaimed, by cluster, as long as it matters."""

    def __init__(
        self, fraction: float = CAP_FRACTION, window_seconds: float = WINDOW_SECONDS
    ) -> None:
        self.fraction = fraction
        self._window = window_seconds
        self._spent: dict[str, deque[tuple[float, int]]] = {}

    def budget(self, configured: Mapping[str, int], now: float) -> dict[str, int]:
        """Cluster -> how many may be reclaimed now; `configured` counts its machines."""
        return {
            cluster: max(0, cap_of(count, self.fraction) - self.spent(cluster, now))
            for cluster, count in configured.items()
        }

    def spent(self, cluster: str, now: float) -> int:
        """How many were reclaimed in the window that ends now."""
        times = self._spent.get(cluster)
        if times is None:
            return 0
        while times and times[0][0] <= now - self._window:
            times.popleft()
        if not times:
            del self._spent[cluster]
        return sum(count for _, count in times)

    def spend(self, orders: Iterable[Order], now: float) -> None:
        """These are on their way.

        A Preempt that is in no hurry is how the decision takes what a cluster has in excess, which
        counts against its cap; it is counted here and never held back.
        """
        counts = Counter(order.cluster for order in orders if _counts(order))
        for cluster, count in counts.items():
            self._spent.setdefault(cluster, deque()).append((now, count))


def _counts(order: Order) -> bool:
    return order.kind is ActionKind.RECLAIM or (
        order.kind is ActionKind.PREEMPT and order.grace_seconds >= VOLUNTARY_GRACE_SECONDS
    )


@dataclass(frozen=True, slots=True)
class RailSettings:
    """What the owner of a shard may set about its rails."""

    cap_fraction: float = CAP_FRACTION
    window_seconds: float = WINDOW_SECONDS
    max_actions: int = MAX_ACTIONS
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class AdmittedOrders:
    """What may be executed, and how much was held back by what."""

    orders: list[Order]
    capped: int = 0
    deferred: int = 0
    """Held back by the limit: where anything is executed, the next cycle should follow at once."""
    suppressed: int = 0
    """Not executed because of pause or dry-run."""
    withheld: list[tuple[Order, str]] = field(default_factory=list)
    """What was decided and is not executed, each with the word for why."""


class Rails:
    """All rails of a shard, in the order they apply."""

    def __init__(
        self,
        settings: RailSettings,
        pause: Pause,
        clock: Clock,
        metrics: ExecuteMetrics,
        unheard: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`unheard` names the providers that were never listed since the start."""
        self.settings = settings
        self.pause = pause
        self._unheard = unheard
        self._clock = clock
        self._metrics = metrics
        self._window = ReclaimWindow(settings.cap_fraction, settings.window_seconds)

    def may_act(self) -> bool:
        """Whether anything may be done to the world."""
        return not self.pause.on and not self.settings.dry_run

    def reclaim_budget(self, configured: Mapping[str, int]) -> dict[str, int]:
        """For `Policy.reclaim_budget`; `configured` counts each cluster's Configured machines."""
        return self._window.budget(configured, self._clock.monotonic())

    def admit(
        self, orders: Sequence[Order], budget: Mapping[str, int], beyond: int = 0
    ) -> AdmittedOrders:
        """What of a cycle's orders may be executed, given the budget the cycle decided with.

        `beyond` counts reclaims for which no order was made because the budget had none left.
        """
        unheard = self._wait_for_all(orders)
        cap = capped(unheard.kept, budget)
        limit = limited(cap.kept, self.settings.max_actions)
        deferred = len(cap.held) + beyond
        if deferred:
            self._metrics.reclaims_capped(deferred)
            keys = {"deferred_reclaims": deferred, "cap_fraction": self._window.fraction}
            _log.warning("reclaim blast-radius cap engaged", extra=keys)
        if limit.held:
            self._metrics.actions_deferred(len(limit.held))
        held = (deferred, len(limit.held))
        withheld = [(order, UNHEARD) for order in unheard.held]
        if not self.may_act():
            self._suppress(limit.kept)
            word = PAUSED if self.pause.on else DRY_RUN
            withheld += [(order, word) for order in limit.kept]
            return AdmittedOrders([], *held, len(limit.kept), withheld)
        self._window.spend(limit.kept, self._clock.monotonic())
        return AdmittedOrders(limit.kept, *held, 0, withheld)

    def _wait_for_all(self, orders: Sequence[Order]) -> OrderSplit:
        """Hold back Reclaims and Preempts until every provider was listed once since the start.

        Before that, demand may look unmet and machines may look superfluous only because the
        machines of a provider are not known yet.
        """
        names = self._unheard()
        cut = not_taking(orders) if names else OrderSplit(list(orders), [])
        if cut.held:
            self._metrics.actions_suppressed(Counter(counted_as(one.kind) for one in cut.held))
            _log.warning(
                "nothing is taken from clusters until provider %s has been listed once: its "
                "machines may serve what looks unmet; fix it, or "
                "remove it from the registry if it is gone for good",
                ", ".join(names),
                extra={"count": len(cut.held), "providers": list(names)},
            )
        return cut

    def _suppress(self, orders: Sequence[Order]) -> None:
        if not orders:
            return
        counts = Counter(counted_as(order.kind) for order in orders)
        if self.pause.on:
            self._metrics.actions_suppressed(counts)
            keys = {"count": len(orders), "reason": self.pause.reason}
            _log.warning("actuation paused: decided actions suppressed", extra=keys)
            return
        self._metrics.actions_dryrun(counts)
