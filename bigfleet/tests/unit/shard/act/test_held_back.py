"""What was decided and not carried out is told once, as long as it stays so."""

import asyncio
import itertools
import logging

import pytest

from bigfleet.decision import ActionKind
from bigfleet.shard.act.decisions import Decision
from bigfleet.shard.act.held_back import AT_ONCE, DRY_RUN, PAUSED, HeldBackOrders
from executing_values import order

K = ActionKind
ONE, OTHER = order(K.BOOTSTRAP, "m-1"), order(K.RECLAIM, "m-2", grace_seconds=600)


def withheld() -> tuple[HeldBackOrders, list[Decision]]:
    told: list[Decision] = []
    return HeldBackOrders(told.append, lambda: 7), told


async def test_a_decision_in_vain_is_told_with_the_word_for_why() -> None:
    held, told = withheld()
    await held.take([(OTHER, DRY_RUN)], 3)
    (decision,) = told
    assert (decision.cycle, decision.unix_nanos, decision.kind) == (3, 7, "Reclaim")
    assert (decision.machine_id, decision.cluster_id) == ("m-2", "c-1")
    assert (decision.outcome, decision.grace_seconds) == ("dry_run", 600)
    assert decision.reason == "because"


async def test_the_same_again_is_told_once_and_once_more_after_a_break() -> None:
    held, told = withheld()
    for cycle in (1, 2, 3):
        await held.take([(ONE, PAUSED), (OTHER, PAUSED)][: cycle % 2 + 1], cycle)
    assert [(d.cycle, d.machine_id) for d in told] == [(1, "m-1"), (1, "m-2"), (3, "m-2")]
    await held.take([], 4)
    await held.take([(ONE, PAUSED)], 5)
    assert (told[-1].cycle, told[-1].machine_id) == (5, "m-1")


async def test_another_word_for_the_same_is_news() -> None:
    held, told = withheld()
    await held.take([(ONE, PAUSED)], 1)
    await held.take([(ONE, DRY_RUN)], 2)
    assert [d.outcome for d in told] == [PAUSED, DRY_RUN]


async def test_a_dry_run_logs_each_action_once(caplog: pytest.LogCaptureFixture) -> None:
    held, _ = withheld()
    with caplog.at_level(logging.INFO):
        for cycle in (1, 2, 3):
            await held.take([(ONE, DRY_RUN), (OTHER, DRY_RUN)][:cycle], cycle)
    assert [r.message for r in caplog.records] == ["dry-run: would execute action"] * 2
    last = caplog.records[-1].__dict__
    assert (last["kind"], last["machine"], last["cluster"]) == ("Reclaim", "m-2", "c-1")
    assert (last["reason"], last["grace"]) == ("because", 600)


async def test_a_pause_logs_no_single_action(caplog: pytest.LogCaptureFixture) -> None:
    held, _ = withheld()
    with caplog.at_level(logging.INFO):
        await held.take([(ONE, PAUSED)], 1)
    assert not caplog.records


async def test_others_have_their_turns_while_thousands_are_told() -> None:
    held, told = withheld()
    orders = [(order(K.BOOTSTRAP, f"m-{n}"), DRY_RUN) for n in range(1000)]
    telling, seen = asyncio.create_task(held.take(orders, 1)), [0]
    while not telling.done():
        await asyncio.sleep(0)
        seen.append(len(told))
    assert len(told) == 1000
    steps = [after - before for before, after in itertools.pairwise(seen)]
    assert max(steps) <= AT_ONCE
