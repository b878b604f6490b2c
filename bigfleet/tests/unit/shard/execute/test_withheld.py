"""What was decided and not carried out is told once, as long as it stays so."""

from bigfleet.decision import ActionKind
from bigfleet.shard.execute.decisions import Decision
from bigfleet.shard.execute.withheld import DRY_RUN, PAUSED, Withheld
from executing_values import order

K = ActionKind
ONE, OTHER = order(K.BOOTSTRAP, "m-1"), order(K.RECLAIM, "m-2", grace_seconds=600)


def withheld() -> tuple[Withheld, list[Decision]]:
    told: list[Decision] = []
    return Withheld(told.append, lambda: 7), told


def test_a_decision_in_vain_is_told_with_the_word_for_why() -> None:
    held, told = withheld()
    held.take([(OTHER, DRY_RUN)], 3)
    (decision,) = told
    assert (decision.cycle, decision.unix_nanos, decision.kind) == (3, 7, "Reclaim")
    assert (decision.machine_id, decision.cluster_id) == ("m-2", "c-1")
    assert (decision.outcome, decision.grace_seconds) == ("dry_run", 600)
    assert decision.reason == "because"


def test_the_same_again_is_told_once_and_anew_after_a_break() -> None:
    held, told = withheld()
    for cycle in (1, 2, 3):
        held.take([(ONE, PAUSED), (OTHER, PAUSED)][: cycle % 2 + 1], cycle)
    assert [(d.cycle, d.machine_id) for d in told] == [(1, "m-1"), (1, "m-2"), (3, "m-2")]
    held.take([], 4)
    held.take([(ONE, PAUSED)], 5)
    assert (told[-1].cycle, told[-1].machine_id) == (5, "m-1")


def test_another_word_for_the_same_is_news() -> None:
    held, told = withheld()
    held.take([(ONE, PAUSED)], 1)
    held.take([(ONE, DRY_RUN)], 2)
    assert [d.outcome for d in told] == [PAUSED, DRY_RUN]
