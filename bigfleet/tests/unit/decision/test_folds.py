"""Folds: gangs that fit on one machine each are one row, and its members are served one by one."""

from bigfleet.decision import ActionKind
from bigfleet.model import Need
from bigfleet.model.facts import ClusterFacts
from worlds import RACK, A, B, after, decide, label, machine, need, replace, serving, shard

K = ActionKind


def gangs(count: int, priority: int = 100) -> list[Need]:
    """Equal gangs of two pods, each of which fits on a machine of 8."""
    return [
        need(A, cpu=8, unit=4, same=RACK, group=f"g-{i}", priority=priority) for i in range(count)
    ]


def test_no_more_members_become_gangs_than_the_fold_lacks_machines() -> None:
    rows = gangs(3)
    # The large one holds two members, though it carries the name of one: a third is missing.
    large = serving("m-large", rows[0], cpu=16, rack="r-0")
    pairs = [machine(f"m-{i}", cpu=4, rack="r-1") for i in range(4)]
    outcome = decide([large, *pairs], rows)
    assert outcome.satisfied()
    assert len(outcome.does) == 2


def test_a_member_that_lost_its_machine_is_named_once_and_then_the_next() -> None:
    rows = gangs(4, priority=500)
    high = need(B, cpu=8, priority=1_000, where=[label("pool", "In", "x")])
    low = need(A, cpu=16, unit=8, priority=0)
    fleet = [
        serving("m-0", rows[0], cpu=8, rack="r-0", labels={"pool": "x"}),
        serving("m-1", rows[1], cpu=8, rack="r-1"),
        *(serving(f"m-low-{i}", low, cpu=8, rack=f"r-{i}") for i in range(2)),
    ]
    outcome = decide(fleet, [*rows, high, low])
    assert outcome.does == {"m-0": K.PREEMPT}
    given = [outcome.stamp(f"m-low-{i}") for i in range(2)]
    assert [stamp and stamp.group for stamp in given] == ["g-0", "g-2"]


def test_overhead_of_a_resource_that_gangs_do_not_ask_for_does_not_keep_them_apart() -> None:
    facts = {A: ClusterFacts(overhead={"gpu": 1_000})}
    fleet = [machine(f"m-{i}", cpu=8, rack="r-0") for i in range(2)]
    outcome = decide(fleet, gangs(2), facts=facts)
    assert len(outcome.plan.verdicts) == 1
    assert len(outcome.does) == 2


def test_what_was_stamped_last_is_of_before_a_shrink_though_the_clock_stands_still() -> None:
    rows, both = gangs(3), shard()
    prices = [9.0, 5.0, 1.0]
    free = [machine(f"m-{i}", cpu=8, rack=f"r-{i}", price=p) for i, p in enumerate(prices)]
    first = after(both, free, rows)
    given = {m.id: first.stamp(m.id) for m in free}
    fleet = [
        replace(serving(m.id, rows[0], cpu=8, rack=f"r-{i}", price=p), stamp=given[m.id])
        for i, (m, p) in enumerate(zip(free, prices, strict=True))
    ]
    # Another gang of the kind is left. The machine with the last number is the cheapest: it stays.
    outcome = after(both, fleet, [replace(rows[0], group="g-9")])
    assert outcome.does == {"m-0": K.RECLAIM, "m-1": K.RECLAIM}


def test_a_leader_stays_where_it_is_though_its_workers_live_on_smaller_machines() -> None:
    leader = replace(need(A, cpu=8, same=RACK, group="job"), size_class="leader")
    workers = replace(need(A, cpu=12, unit=4, same=RACK, group="job"), size_class="worker")
    fleet = [
        serving("m-leader", leader, cpu=8, rack="r-0"),
        *(serving(f"m-{i}", workers, cpu=4, rack="r-1") for i in range(3)),
        machine("m-free", cpu=8, rack="r-1"),
    ]
    outcome = decide(fleet, [leader, workers])
    assert outcome.satisfied()
    assert not outcome.does
