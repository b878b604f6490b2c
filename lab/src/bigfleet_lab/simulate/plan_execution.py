"""A plan carried out at once, column by column, as a shard and a provider would do it in time.

Used where transitions are not the question: benchmarks change the columns by what was decided,
and put them back. Transitions that take their time are in `loop`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan
from bigfleet.inventory import Inventory
from bigfleet.model import MachineState
from bigfleet.model.columns import MachineColumns

I64 = npt.NDArray[np.int64]
S = MachineState

_AFTER: Final = {
    ActionKind.BOOTSTRAP: S.CONFIGURED,
    ActionKind.PROVISION: S.IDLE,
    ActionKind.RECLAIM: S.IDLE,
    ActionKind.PREEMPT: S.IDLE,
    ActionKind.KEEP: S.CONFIGURED,
    ActionKind.DELETE: S.SPECULATIVE,
}
_STATE_AFTER: Final = np.array([0, *(int(_AFTER[kind]) for kind in sorted(ActionKind))], np.int8)


def rows_of(plan: Plan, kind: ActionKind) -> I64:
    """The machines an action of this kind is about."""
    actions = plan.actions
    return np.asarray(actions.machine[actions.kind == kind], np.int64)


def carry_out(plan: Plan, inventory: Inventory, now: int) -> None:
    """Let everything that was decided have happened."""
    actions, stamps, meant = plan.actions, plan.stamps, plan.preempted_for
    if len(stamps.machine):
        inventory.stamp(stamps.machine, stamps.identity, stamps.sequence)
    if not len(actions):
        return
    rows, kinds = actions.machine, actions.kind
    inventory.set_state(rows, _STATE_AFTER[kinds])
    bound = kinds == ActionKind.BOOTSTRAP
    left = (kinds == ActionKind.RECLAIM) | (kinds == ActionKind.PREEMPT)
    inventory.bind(rows[bound], actions.cluster[bound])
    inventory.unbind(rows[left])
    inventory.set_idle_since(rows, np.where(_STATE_AFTER[kinds] == S.IDLE, now, 0))
    inventory.clear_stamp(rows[(kinds == ActionKind.RECLAIM) | (kinds == ActionKind.DELETE)])
    inventory.stamp(meant.machine, meant.identity, meant.sequence)
    inventory.clear_leaving(rows[kinds == ActionKind.KEEP])


def put_back(plan: Plan, inventory: Inventory, before: MachineColumns) -> None:
    """Make every machine that `carry_out` changed what it was before."""
    rows = np.union1d(plan.actions.machine, plan.stamps.machine).astype(np.int64)
    inventory.set_state(rows, before.state[rows])
    inventory.bind(rows, before.cluster[rows])
    inventory.stamp(rows, before.stamp[rows], before.sequence[rows])
    inventory.set_idle_since(rows, before.idle_since[rows])
    kept = rows_of(plan, ActionKind.KEEP)
    inventory.set_leaving(kept, before.leaving_for[kept])
