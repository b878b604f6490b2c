"""The legal moves, and the sets of states."""

import pytest

from bigfleet.model import (
    ALLOCATABLE,
    BOUND,
    STABLE,
    TRANSITIONAL,
    IllegalMoveError,
    MachineState,
    check_move,
    is_legal_move,
)

S = MachineState

LEGAL = {
    (S.SPECULATIVE, S.CREATING),
    (S.CREATING, S.IDLE),
    (S.IDLE, S.CONFIGURING),
    (S.IDLE, S.DELETING),
    (S.CONFIGURING, S.CONFIGURED),
    (S.CONFIGURING, S.IDLE),
    (S.CONFIGURED, S.DRAINING),
    (S.DRAINING, S.IDLE),
    (S.DELETING, S.SPECULATIVE),
    (S.CREATING, S.FAILED),
    (S.CONFIGURING, S.FAILED),
    (S.DRAINING, S.FAILED),
    (S.DELETING, S.FAILED),
}


@pytest.mark.parametrize("frm", S)
@pytest.mark.parametrize("to", S)
def test_a_move_is_legal_exactly_when_the_lifecycle_knows_it(
    frm: MachineState, to: MachineState
) -> None:
    assert is_legal_move(frm, to) == ((frm, to) in LEGAL)
    if (frm, to) in LEGAL:
        check_move(frm, to)
    else:
        with pytest.raises(IllegalMoveError, match=f"from {frm.title} to {to.title}"):
            check_move(frm, to)


def test_a_refused_move_says_where_the_machine_may_go() -> None:
    with pytest.raises(IllegalMoveError, match=r"it goes to Configuring, Deleting$"):
        check_move(S.IDLE, S.CONFIGURED)
    with pytest.raises(IllegalMoveError, match="nothing a shard may start"):
        check_move(S.FAILED, S.IDLE)


def test_every_state_is_stable_transitional_or_failed() -> None:
    assert {*STABLE, *TRANSITIONAL, S.FAILED} == set(S) - {S.UNSPECIFIED}
    assert not STABLE & TRANSITIONAL


def test_only_unbound_stable_machines_can_be_taken() -> None:
    assert set(ALLOCATABLE) == {S.IDLE, S.SPECULATIVE}
    assert ALLOCATABLE < STABLE
    assert set(BOUND) == {S.CONFIGURING, S.CONFIGURED}
    assert not ALLOCATABLE & BOUND
