"""What became of a cluster's needs: the verdicts that changed since it was last told.

What was told is one number per identity (the reason and, where Creates fail, the cause), so that a
cycle in which nothing changed costs a comparison of two columns. A need that is withdrawn is
forgotten; a new session is told everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Reason
from bigfleet.model import format_resources
from bigfleet.model.columns import Symbols
from bigfleet.model.reasons import FAILING_CREATES, WHY
from bigfleet.shard.explain.failing_creates import ShownPlan
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2

I64 = npt.NDArray[np.int64]

MOST_PER_CYCLE: Final = 1_000
"""Verdicts of one cycle: up to 12 ms. What is left over comes with the next."""
_UNTOLD: Final = -1

_CAUSES: Final = list(CreateFailure)
_PER_CAUSE: Final = 1 << 16
_MOST_OF_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class VerdictMessage:
    """A frame for one cluster."""

    cluster: str
    message: pb.ShardMessage


class VerdictUpdates:
    """What clusters were told of their needs, and what they are told now."""

    def __init__(self, most: int = MOST_PER_CYCLE) -> None:
        self._most = most
        self._symbols: Symbols | None = None
        self._sent: I64 = np.zeros(0, np.int64)

    def forget(self, cluster: str) -> None:
        """A session ended: the next one is told everything."""
        if self._symbols is not None:
            whose = self._symbols.identity_column("cluster")[: len(self._sent)]
            self._sent[whose == self._symbols.clusters.find(cluster)] = _UNTOLD

    def changes(self, shown: ShownPlan, listening: Collection[str]) -> Iterator[VerdictMessage]:
        """One frame per cluster that can read it and has news."""
        demand, v = shown.plan.demand, shown.plan.verdicts
        symbols = demand.symbols
        self._grow(symbols)
        row_of = np.repeat(np.arange(len(v)), np.diff(v.members_at))
        identity = demand.identity[v.members]
        code = np.where(v.satisfied, Reason.NONE, v.reason)[row_of].astype(np.int64)
        # A need that is unmet without a reason would read like one that is met.
        code[~v.satisfied[row_of] & (code == Reason.NONE)] = Reason.PRIORITY_STARVED
        numbers = [_PER_CAUSE * (1 + _CAUSES.index(run.cause)) for run in shown.runs]
        code += np.array([*numbers, 0], np.int64)[shown.cause][row_of]
        withdrawn = np.ones(len(self._sent), np.bool_)
        withdrawn[identity] = False
        self._sent[withdrawn] = _UNTOLD
        cluster = symbols.identity_column("cluster")[identity]
        hears = np.zeros(len(symbols.clusters), np.bool_)
        hears[[n for n in map(symbols.clusters.find, listening) if n >= 0]] = True
        news = np.flatnonzero((self._sent[identity] != code) & hears[cluster])
        news = news[np.argsort(cluster[news], kind="stable")][: self._most]
        self._sent[identity[news]] = code[news]
        for part in np.split(news, np.flatnonzero(np.diff(cluster[news])) + 1):
            if len(part):
                yield VerdictMessage(
                    symbols.clusters[int(cluster[part[0]])],
                    _frame(shown, identity[part], row_of[part], code[part]),
                )

    def _grow(self, symbols: Symbols) -> None:
        if symbols is not self._symbols:
            self._symbols, self._sent = symbols, np.zeros(0, np.int64)
        more = symbols.identity_count - len(self._sent)
        if more > 0:
            self._sent = np.concatenate([self._sent, np.full(more, _UNTOLD, np.int64)])


def _frame(
    shown: ShownPlan, identities: npt.NDArray[np.int32], rows: I64, codes: I64
) -> pb.ShardMessage:
    frame = pb.ShardMessage()
    verdicts = frame.need_verdicts.verdicts
    columns = zip(identities.tolist(), rows.tolist(), codes.tolist(), strict=True)
    for identity, row, code in columns:
        stamp = shown.plan.demand.symbols.stamp(identity, 0)
        reason = Reason(code % _PER_CAUSE)
        verdicts.add(
            profile_fingerprint=stamp.fingerprint,
            group=stamp.group,
            size_class=stamp.size_class,
            satisfied=reason is Reason.NONE,
            reason=shardread_pb2.UnmetReason.ValueType(reason),
            message=_words(shown, row, reason),
        )
    return frame


def _words(shown: ShownPlan, row: int, reason: Reason) -> str:
    if reason is Reason.NONE:
        return ""
    run = shown.run(row)
    words = WHY[reason]
    if run is not None:
        detail = f" ({run.text[:_MOST_OF_TEXT]})" if run.text else ""
        words = f"{FAILING_CREATES[run.cause]}{detail}"
    missing = format_resources(shown.plan.missing(row))
    listed = ", ".join(f"{name} {text}" for name, text in missing.items())
    return f"{words}; missing {listed}" if listed else words
