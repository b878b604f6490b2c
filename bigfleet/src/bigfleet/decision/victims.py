"""Who holds a machine, as phase 2 sees it: priority and what its penalties are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bigfleet.decision.kernels.layout import F64, I32, I64, Identities, Rows
from bigfleet.model import PenaltyBucket

_LEAST_DOLLARS = 0.01


@dataclass(frozen=True)
class VictimTables:
    """Distinct (priority, penalties) of holders, and which one each row and identity has."""

    of_row: I32
    of_identity: I32
    priority: I64
    worth: F64
    """[holder, 2]: one over the interruption and the reclamation penalty."""


def victim_tables(rows: Rows, ids: Identities) -> VictimTables:
    """Number the holders' profiles; machines of one class and holder profile score alike."""
    mine = np.column_stack([rows.priority, rows.interruption, rows.reclamation])
    stamped = np.column_stack([ids.priority, ids.interruption, ids.reclamation])
    distinct, number = np.unique(np.concatenate([mine, stamped]), axis=0, return_inverse=True)
    number = number.reshape(-1).astype(np.int32)
    worth = np.array(
        [0.0 if b.pinned else 1.0 / max(b.dollars, _LEAST_DOLLARS) for b in PenaltyBucket]
    )
    return VictimTables(
        of_row=number[: len(mine)],
        of_identity=number[len(mine) :],
        priority=distinct[:, 0].copy(),
        worth=np.column_stack([worth[distinct[:, 1]], worth[distinct[:, 2]]]),
    )
