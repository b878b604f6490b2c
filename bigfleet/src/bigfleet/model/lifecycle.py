"""The life of a machine: which moves from state to state a shard may start.

    Speculative -> Creating -> Idle -> Configuring -> Configured -> Draining -> Idle
                               Idle -> Deleting -> Speculative
                                       Configuring -> Idle, given up before the provider was touched
    Creating, Configuring, Draining, Deleting -> Failed

Only moves the shard starts are checked. What a provider reports may jump (a spot host that
vanished, a poll that was missed): observed truth is always taken in, and counted, by the shard's
book. Out of Failed only the provider leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bigfleet.model.errors import IllegalMoveError
from bigfleet.model.machine import MachineState

_S = MachineState

STABLE: Final = frozenset({_S.SPECULATIVE, _S.IDLE, _S.CONFIGURED})
"""States that last until BigFleet decides something. A Failed machine is left to its provider."""

TRANSITIONAL: Final = frozenset({_S.CREATING, _S.CONFIGURING, _S.DRAINING, _S.DELETING})
"""States in which the provider is at work."""

ALLOCATABLE: Final = frozenset({_S.SPECULATIVE, _S.IDLE})
"""The only states from which a machine can be taken for a need."""

BOUND: Final = frozenset({_S.CONFIGURING, _S.CONFIGURED})
"""States in which a machine counts as supply of the cluster it is bound to."""

HELD: Final = BOUND | {_S.DRAINING}
"""States in which a cluster has the host, whether or not it counts as supply."""

RECLAIMABLE: Final = frozenset({_S.CONFIGURED, _S.DRAINING})
"""States in which a reclaim can be in progress."""

INBOUND: Final = frozenset({_S.CREATING, _S.IDLE, _S.CONFIGURING})
"""States in which a stamped machine is on its way to the cluster of its stamp."""

STAMPED: Final = INBOUND | {_S.CONFIGURED}
"""States in which a machine keeps its stamp."""

WITHOUT_HOST: Final = frozenset({_S.SPECULATIVE, _S.CREATING})
"""States in which a slot has no host yet, so no cluster either."""

LEGAL_MOVES: Final[Mapping[MachineState, frozenset[MachineState]]] = MappingProxyType(
    {
        _S.UNSPECIFIED: frozenset(),
        _S.SPECULATIVE: frozenset({_S.CREATING}),
        _S.CREATING: frozenset({_S.IDLE, _S.FAILED}),
        _S.IDLE: frozenset({_S.CONFIGURING, _S.DELETING}),
        _S.CONFIGURING: frozenset({_S.CONFIGURED, _S.IDLE, _S.FAILED}),
        _S.CONFIGURED: frozenset({_S.DRAINING}),
        _S.DRAINING: frozenset({_S.IDLE, _S.FAILED}),
        _S.DELETING: frozenset({_S.SPECULATIVE, _S.FAILED}),
        _S.FAILED: frozenset(),
    }
)


def is_legal_move(frm: MachineState, to: MachineState) -> bool:
    """Whether a shard may start this move. Staying in a state is not a move."""
    return to in LEGAL_MOVES[frm]


def check_move(frm: MachineState, to: MachineState) -> None:
    """Refuse a move the lifecycle does not know."""
    if not is_legal_move(frm, to):
        legal = (
            ", ".join(state.title for state in sorted(LEGAL_MOVES[frm]))
            or "nothing a shard may start"
        )
        raise IllegalMoveError(
            f"a machine cannot go from {frm.title} to {to.title}: from there it goes to {legal}"
        )
