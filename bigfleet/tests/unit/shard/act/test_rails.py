"""Rails: the reclaim cap, the limit per cycle, pause and dry-run."""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest

from bigfleet.decision import ActionKind
from bigfleet.shard.act.held_back import DRY_RUN, PAUSED, UNHEARD
from bigfleet.shard.act.rails import (
    Rails,
    RailSettings,
    ReclaimWindow,
    cap_of,
    limited,
    not_taking,
    spend_limit_micro,
    units,
)
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.state.pause import PAUSE_FILE, Pause
from clocks import HandClock
from coordinating import Slowly
from executing import Counted
from executing_values import order
from sim.ports import SimDisk

K = ActionKind
T = TypeVar("T")


async def at_once(function: Callable[[], T]) -> T:
    return function()


def rails(disk: SimDisk | None = None, **settings: object) -> tuple[Rails, HandClock, Counted]:
    clock, metrics = HandClock(), Counted()
    pause = Pause(disk or SimDisk(Random(1)), at_once, metrics.actuation_paused)
    return Rails(RailSettings(**settings), pause, clock, metrics), clock, metrics  # type: ignore[arg-type]


def reclaims(count: int, cluster: str = "c-1") -> list[Order]:
    return [order(K.RECLAIM, f"{cluster}-{n}", cluster) for n in range(count)]


def bootstraps(count: int, group: str = "") -> list[Order]:
    return [order(K.BOOTSTRAP, f"{group or 'b'}-{n}", group=group) for n in range(count)]


@pytest.mark.parametrize(("configured", "cap"), [(0, 1), (19, 1), (40, 2), (59, 2), (1000, 50)])
def test_a_cluster_gives_back_a_twentieth_and_at_least_one(configured: int, cap: int) -> None:
    assert cap_of(configured, 0.05) == cap


def test_reclaims_above_the_cap_wait_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    rail, _, metrics = rails()
    budget = rail.reclaim_budget({"c-1": 100, "c-2": 10})
    assert budget == {"c-1": 5, "c-2": 1}
    with caplog.at_level(logging.WARNING):
        admitted = rail.admit([*reclaims(8), *reclaims(2, "c-2"), *bootstraps(1)], budget)
    assert [each.machine for each in admitted.orders if each.kind is K.RECLAIM] == [
        *(f"c-1-{n}" for n in range(5)), "c-2-0",
    ]  # fmt: skip
    assert (len(admitted.orders), admitted.capped) == (7, 4)
    assert metrics.counts["capped"] == 4
    (record,) = caplog.records
    assert record.message == "reclaim blast-radius cap engaged"
    assert record.__dict__["deferred_reclaims"] == 4
    assert record.__dict__["cap_fraction"] == 0.05


def test_the_cap_is_per_window_however_fast_cycles_come() -> None:
    rail, clock, _ = rails()
    passed = []
    for _ in range(100):
        budget = rail.reclaim_budget({"c-1": 100})
        passed.append(len(rail.admit(reclaims(100), budget).orders))
        clock.advance(0.2)
    assert sum(passed[:50]) == 5
    assert sum(passed) == 10


def test_preempts_are_not_capped_but_those_in_no_hurry_count() -> None:
    rail, _, _ = rails()
    budget = rail.reclaim_budget({"c-1": 60})
    hasty = [order(K.PREEMPT, f"p-{n}") for n in range(9)]
    excess = [order(K.PREEMPT, f"e-{n}", grace_seconds=600) for n in range(2)]
    assert len(rail.admit([*hasty, *excess], budget).orders) == 11
    assert rail.reclaim_budget({"c-1": 60}) == {"c-1": 1}


def test_a_cluster_that_was_not_counted_gives_back_nothing() -> None:
    rail, _, _ = rails()
    assert not rail.admit(reclaims(1, "c-9"), {}).orders


def test_the_window_forgets_clusters_that_are_quiet() -> None:
    window = ReclaimWindow()
    window.spend(reclaims(3), 0.0)
    assert window.spent("c-1", 9.9) == 3
    assert window.spent("c-1", 10.0) == 0


def test_orders_beyond_the_limit_are_deferred() -> None:
    rail, _, metrics = rails(max_actions=4)
    admitted = rail.admit(bootstraps(6), {})
    assert (len(admitted.orders), admitted.deferred) == (4, 2)
    assert metrics.counts["deferred"] == 2


def test_the_limit_keeps_or_drops_a_gang_whole_and_fills_up_with_others() -> None:
    gang, others = bootstraps(3, "g"), bootstraps(4)
    cut = limited([*others[:2], *gang, *others[2:]], 4)
    assert cut.kept == others
    assert cut.held == gang


def test_a_gang_larger_than_the_limit_goes_when_it_is_first() -> None:
    gang, others = bootstraps(5, "g"), bootstraps(1)
    assert limited([*gang, *others], 4).kept == gang
    assert limited([*others, *gang], 4).kept == others


def test_members_of_a_gang_are_one_unit_wherever_they_stand() -> None:
    a, b = bootstraps(2, "g"), bootstraps(1)
    assert units([a[0], *b, a[1]]) == [a, b]
    mixed = [a[0], order(K.PROVISION, "x", group="g"), order(K.PROVISION, "y", "c-2", group="g")]
    assert [len(unit) for unit in units(mixed)] == [2, 1]
    assert len(units([order(K.KEEP, "k", group="g"), order(K.RECLAIM, "r")])) == 2


def test_a_paused_shard_executes_nothing_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rail, _, metrics = rails()
    asyncio.run(rail.pause.pause("maintenance"))
    budget = rail.reclaim_budget({"c-1": 100})
    with caplog.at_level(logging.INFO):
        admitted = rail.admit([*reclaims(2), *bootstraps(3)], budget)
    assert (admitted.orders, admitted.suppressed) == ([], 5)
    assert {word for _, word in admitted.withheld} == {PAUSED}
    assert metrics.suppressed == {"Reclaim": 2, "Bootstrap": 3}
    (record,) = caplog.records
    assert record.message == "actuation paused: decided actions suppressed"
    assert record.__dict__["count"] == 5
    assert rail.reclaim_budget({"c-1": 100}) == budget
    assert not rail.may_act()
    caplog.clear()
    rail.admit([], budget)
    assert not caplog.records


def test_nothing_is_taken_from_a_cluster_before_every_provider_was_heard(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unheard, metrics = ["p-2", "p-3"], Counted()
    pause = Pause(SimDisk(Random(1)), at_once, metrics.actuation_paused)
    rail = Rails(RailSettings(), pause, HandClock(), metrics, lambda: unheard)
    decided = [*reclaims(2), order(K.PREEMPT, "v"), *bootstraps(1), order(K.DELETE, "d")]
    with caplog.at_level(logging.WARNING):
        admitted = rail.admit(decided, {"c-1": 9})
    assert [each.machine for each in admitted.orders] == ["b-0", "d"]
    assert [word for _, word in admitted.withheld] == [UNHEARD] * 3
    assert metrics.suppressed == {"Reclaim": 2, "Preempt": 1}
    (record,) = caplog.records
    assert "until provider p-2, p-3 has been listed once" in record.message
    assert record.__dict__["count"] == 3
    unheard.clear()
    assert rail.admit(decided, {"c-1": 9}).orders == decided


def test_a_machine_whose_end_is_announced_is_drained_whatever_was_reported() -> None:
    ending = order(K.RECLAIM, "m", is_ending=True)
    assert not_taking([ending]).kept == [ending]
    victim = order(K.PREEMPT, "m", is_ending=True)
    assert not_taking([victim]).held == [victim]


def test_a_gang_waits_whole_for_what_would_be_taken_for_it() -> None:
    gang = [order(K.BOOTSTRAP, f"g-{n}", "c-2", group="g") for n in range(2)]
    victim = order(K.PREEMPT, "v", group="g")
    cut = not_taking([*gang, victim, *bootstraps(1)])
    assert cut.held == [*gang, victim]
    assert cut.kept == bootstraps(1)


def test_a_dry_run_executes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rail, _, metrics = rails(dry_run=True)
    decided = [*bootstraps(2), order(K.KEEP, "k")]
    with caplog.at_level(logging.INFO):
        admitted = rail.admit(decided, {})
    assert (admitted.orders, admitted.suppressed) == ([], 3)
    assert admitted.withheld == [(each, DRY_RUN) for each in decided]
    assert metrics.dryrun == {"Bootstrap": 2, "Unspecified": 1}
    assert not rail.may_act()
    assert not caplog.records


def test_a_pause_survives_restarts_until_it_is_lifted() -> None:
    disk = SimDisk(Random(1))

    async def main() -> None:
        first, _, metrics = rails(disk)
        await first.pause.load()
        assert not first.pause.on
        await first.pause.pause("storm")
        assert metrics.paused
        second, _, metrics = rails(disk)
        await second.pause.load()
        assert (second.pause.on, second.pause.reason, metrics.paused) == (True, "storm", True)
        await second.pause.resume()
        third, _, _ = rails(disk)
        await third.pause.load()
        assert not third.pause.on

    asyncio.run(main())


def test_an_unreadable_pause_file_means_paused() -> None:
    disk = SimDisk(Random(1))
    disk.replace(PAUSE_FILE, b"{")

    async def main() -> None:
        rail, _, _ = rails(disk)
        await rail.pause.load()
        assert rail.pause.on
        assert PAUSE_FILE in rail.pause.reason

    asyncio.run(main())


def test_a_full_disk_does_not_keep_the_switch_from_acting() -> None:
    disk = SimDisk(Random(1))

    async def main() -> None:
        rail, _, _ = rails(disk)
        disk.full = True
        with pytest.raises(OSError, match="No space"):
            await rail.pause.pause("storm")
        assert rail.pause.on
        with pytest.raises(OSError, match="No space"):
            await rail.pause.resume()
        assert rail.pause.on

    asyncio.run(main())


async def switched_at_once(*, pause_last: bool) -> tuple[Pause, Pause, list[bool]]:
    """A paused shard is told to resume and to pause at once: it, its next life, what was seen."""
    disk = SimDisk(Random(1))
    switch, seen = Pause(disk, Slowly(), Counted().actuation_paused), []
    await switch.pause("first")
    calls = [switch.resume(), switch.pause("incident")][:: 1 if pause_last else -1]
    tasks = []
    for call in calls:
        tasks.append(asyncio.create_task(call))
        await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        seen.append(switch.on)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    later = Pause(disk, at_once, Counted().actuation_paused)
    await later.load()
    return switch, later, seen


async def test_a_pause_during_a_resume_holds_without_a_gap() -> None:
    switch, later, seen = await switched_at_once(pause_last=True)
    assert all(seen)
    assert (switch.on, switch.reason) == (later.on, later.reason) == (True, "incident")


async def test_a_resume_during_a_pause_is_the_last_word() -> None:
    switch, later, _ = await switched_at_once(pause_last=False)
    assert (switch.on, switch.reason) == (later.on, later.reason) == (False, "")


def test_the_spend_limit_is_counted_in_micro_dollars() -> None:
    assert spend_limit_micro(None) is None
    assert spend_limit_micro(12.5) == 12_500_000
