"""Decisions that are not carried out, told like those that are.

A pause, a dry-run or a provider that was never listed lets cycles decide the same again and again.
Each is told when it is first decided, and again after it was not for a cycle: people who watch see
what would be done, once. A dry-run logs it as well. There may be thousands at once: they are told
in portions, other tasks having their turns in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from sys import intern
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.shard.act.decisions import Decision
from bigfleet.shard.machines.orders import Order

PAUSED: Final = "suppressed"
DRY_RUN: Final = "dry_run"
UNHEARD: Final = "provider_unheard"
"""The words for an outcome that is none."""

AT_ONCE: Final = 16
"""Decisions told between two turns of the event loop: 3 ms, nearly all of it for the log lines."""
_log = logging.getLogger(__name__)

_Key = tuple[ActionKind, str, str, str]


class HeldBackOrders:
    """What the last cycle decided and was not carried out."""

    def __init__(self, tell: Callable[[Decision], None], now: Callable[[], int]) -> None:
        self._tell, self._now = tell, now
        self._last: frozenset[_Key] = frozenset()

    async def take(self, withheld: Sequence[tuple[Order, str]], cycle: int) -> None:
        """What a cycle decided in vain, each with the word for why."""
        if not withheld and not self._last:
            return
        keys = [(order.kind, order.machine, order.cluster, word) for order, word in withheld]
        news = [entry for entry, key in zip(withheld, keys, strict=True) if key not in self._last]
        self._last = frozenset(keys)
        for begin in range(0, len(news), AT_ONCE):
            for order, word in news[begin : begin + AT_ONCE]:
                self._tell(decision_of(order, cycle, self._now(), word))
                if word == DRY_RUN:
                    _log.info("dry-run: would execute action", extra=_described(order))
            await asyncio.sleep(0)


def decision_of(
    order: Order, cycle: int, now: int, outcome: str, why: str = "", kind: str = ""
) -> Decision:
    """An order and its end as a decision; `kind` where it is not the order's own.

    Thousands of them are kept, and most of their texts are the same: each is kept once.
    """
    return Decision(
        cycle=cycle,
        unix_nanos=now,
        kind=kind or order.kind.title,
        machine_id=intern(order.machine),
        cluster_id=intern(order.cluster),
        profile_fingerprint=intern(order.fingerprint),
        reason=intern(f"{order.reason}: {why}" if why else order.reason),
        cost_per_hour=order.dollars_per_hour,
        outcome=outcome,
        grace_seconds=order.grace_seconds,
    )


def _described(order: Order) -> dict[str, object]:
    return {
        "kind": order.kind.title,
        "machine": order.machine,
        "cluster": order.cluster,
        "reason": order.reason,
        "grace": order.grace_seconds,
    }
