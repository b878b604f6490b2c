"""Optimistic concurrency: workers propose ahead, one broker commits in the total order.

Each worker computes proposals for a stretch of rows on a private view of what is free. The broker
then takes the rows in order; where a bucket that a proposal read has changed, that is a conflict
and the row is computed again on the present state. So the outcome equals the serial pass for any
number of workers and any interleaving.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bigfleet.decision.buffers import BufferPool, make_scratch
from bigfleet.decision.cycle_arrays import CycleArrays
from bigfleet.decision.kernels import entry
from bigfleet.decision.kernels.propose import CONFLICTS, PROPOSALS, RECOMPUTED
from bigfleet.decision.kernels.references import refer
from bigfleet.decision.plan import Counters
from bigfleet.decision.victims import no_victims

_STRETCH = 256
"""Rows per worker and round: long enough to pay for the private view, short enough to hold."""


def assign_with_workers(c: CycleArrays, workers: int, buffers: BufferPool) -> Counters:
    """Phase 1's turns with proposals computed ahead by several threads."""
    size = c.rows
    count = np.zeros(max(1, size), np.int32)
    at = np.zeros(max(1, size) + 1, np.int64)
    most_takes = len(c.ho.bucket) + 1
    proposed = [np.zeros(most_takes, np.int32) for _ in range(workers)]
    scratches = [
        refer(make_scratch(buffers, len(c.ma.state), c.ro, c.cl, c.fa, f"worker-{w}-"))
        for w in range(workers)
    ]
    none = no_victims()
    with ThreadPoolExecutor(workers, thread_name_prefix="propose") as pool:
        for first in range(0, size, workers * _STRETCH):
            base, limits = c.wo.changes.copy(), int(c.wo.counters[0])
            stretches = [
                (lo, min(lo + _STRETCH, size))
                for lo in range(first, min(first + workers * _STRETCH, size), _STRETCH)
            ]
            done = [
                pool.submit(_propose, c, scratches[w], none, lo, hi, count, proposed[w], at)
                for w, (lo, hi) in enumerate(stretches)
            ]
            for future in done:
                future.result()
            for w, (lo, hi) in enumerate(stretches):
                entry.run(
                    entry.COMMIT, *c.refs, none, lo, hi, c.sub_rows, count, proposed[w], at,
                    base, limits,
                )  # fmt: skip
    tally = c.wo.counters
    return Counters(int(tally[PROPOSALS]), int(tally[CONFLICTS]), int(tally[RECOMPUTED]))


def _propose(
    c: CycleArrays, scratch: Any, victims: Any, lo: int, hi: int, count: Any, proposed: Any, at: Any
) -> None:
    """One worker's stretch, on its own copies of everything a turn writes."""
    private = c.wo._replace(
        taken=c.wo.taken.copy(),
        used=c.wo.used.copy(),
        spend=c.wo.spend.copy(),
        spread=c.wo.spread.copy(),
        position=c.wo.position.copy(),
        stale=c.wo.stale.copy(),
        front=c.wo.front.copy(),
    )
    refs = (*c.refs[:6], refer(private), scratch)
    unused = np.zeros(1, np.int64)
    mine = at[lo : hi + 1]
    mine[0] = 0
    entry.run(entry.PROPOSE, *refs, victims, lo, hi, c.sub_rows, count, proposed, at, unused, 0)
