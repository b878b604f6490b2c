"""One compiled function for the phases that share most of their code.

Compiling acquire once for credit, assign, workers and preempt instead of once for each makes the
first start after an install several times shorter.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.after_preempt import charge_losses, give_back_after_moves
from bigfleet.decision.kernels.assign import (
    assign,
    credit_gangs,
    credit_loose,
    credit_stamped,
    list_loose,
)
from bigfleet.decision.kernels.layout import (
    I32,
    I64,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Victims,
    Work,
)
from bigfleet.decision.kernels.preempt import preempt
from bigfleet.decision.kernels.propose import broker, propose
from bigfleet.jit.decorators import jit

CREDIT, ASSIGN, PROPOSE, COMMIT, PREEMPT = range(5)


@jit
def run(
    stage: int, ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts,
    ho: Holdings,
    wo: Work, sc: Scratch, vi: Victims, first: int, last: int, sub_rows: I64, count: I32,
    proposed: I32, at: I64, base: I64, limits: int,
) -> None:  # fmt: skip
    """Run one stage over rows first..last-1."""
    sizes = np.zeros(4, np.int64)
    if stage == CREDIT:
        credit_stamped(ma, cl, ids, ro, fa, ho, wo, sc, last)
        list_loose(ma, cl, ids, ro, ho, wo, sc, last)
        credit_gangs(ma, cl, ids, ro, fa, ho, wo, sc, last)
        credit_loose(ma, cl, ids, ro, fa, ho, wo, sc, last)
    elif stage == ASSIGN:
        assign(ma, cl, ids, ro, fa, ho, wo, sc, first, last, sub_rows, sizes)
    elif stage == PROPOSE:
        propose(ma, cl, ids, ro, fa, ho, wo, sc, first, last, sub_rows, count, proposed, at)
    elif stage == COMMIT:
        broker(
            ma, cl, ids, ro, fa, ho, wo, sc, first, last, sub_rows, count, proposed, at, base,
            limits, sizes,
        )  # fmt: skip
    elif stage == PREEMPT:
        preempt(ma, cl, ids, ro, fa, ho, wo, sc, vi, last)
        charge_losses(ma, cl, ro, fa, wo, sc)
        give_back_after_moves(ma, cl, ro, fa, wo, sc)
