"""Where a cycle's time went and for whom it moved machines: log lines for people who tune a shard.

Off unless asked for (`--phase-attribution-log`). A few lines per cycle, made of a plan's columns:
nothing is looked at machine by machine, and a cycle that has nothing to say about gangs or reclaims
says nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

import numpy as np

from bigfleet.decision import ActionKind, Plan, Reason
from bigfleet.observe.cycles import CycleRecord

_NAMED: Final = 3
"""Clusters that are named; the others are only counted."""
_NS_PER_MS: Final = 1e6
_log = logging.getLogger(__name__)


def attribute_phases(record: CycleRecord) -> None:
    """How long each phase of a finished cycle took, and what it had to look at."""
    _log.info(
        "phase attribution",
        extra={
            "cycle": record.cycle,
            "trigger": record.trigger,
            "wall_ms": round(record.wall_ns / _NS_PER_MS, 3),
            "cpu_ms": round(record.cpu_ns / _NS_PER_MS, 3),
            **{f"{name}_ms": round(ns / _NS_PER_MS, 3) for name, ns in record.phases.items()},
            "needs": record.needs,
            "machines": record.machines,
            "changes": record.changes,
        },
    )


def attribute_plan(cycle: int, plan: Plan) -> None:
    """Whose machines are reclaimed, and how gangs fared."""
    _attribute_reclaims(cycle, plan)
    v = plan.verdicts
    gang = v.domain_key >= 0
    unmet = np.flatnonzero(gang & ~v.satisfied)
    if len(unmet):
        reasons = Counter(Reason(code).name for code in v.reason[unmet].tolist())
        _log.info(
            "gang attribution",
            extra={
                "cycle": cycle,
                "gangs": len(unmet),
                "without_domain": int((~v.satisfiable[unmet]).sum()),
                "victims": int(v.victims[unmet].sum()),
                **{name.lower(): count for name, count in sorted(reasons.items())},
            },
        )
    met = np.flatnonzero(gang & v.satisfied)
    if len(met):
        domains = np.column_stack([v.domain_key[met], v.domain[met]])
        _log.info(
            "satisfied gang attribution",
            extra={
                "cycle": cycle,
                "gangs": len(met),
                "machines": int(v.claimed[met].sum()),
                "from_idle": int(v.from_idle[met].sum()),
                "from_speculative": int(v.from_speculative[met].sum()),
                "domains": len(np.unique(domains, axis=0)),
            },
        )


def _attribute_reclaims(cycle: int, plan: Plan) -> None:
    clusters = plan.actions.cluster[plan.actions.kind == ActionKind.RECLAIM]
    if not len(clusters):
        return
    names, counts = np.unique(clusters, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_NAMED]
    known = plan.fleet.symbols.clusters
    _log.info(
        "reclaim attribution",
        extra={
            "cycle": cycle,
            "reclaims": len(clusters),
            "clusters": len(names),
            "most": [f"{known[int(names[i])]}:{int(counts[i])}" for i in most],
        },
    )
