"""Places for gangs: which of many is chosen, what counts there, and who is told about it."""

from typing import Any

import pytest

from bigfleet.decision import ActionKind, Reason, buffers, engine
from bigfleet.model import Profile
from bigfleet.model.facts import ClusterFacts
from gangs import gang, rack
from living import Living
from worlds import NOW, RACK, ZONE, A, B, S, decide, label, machine, need, replace, serving

K = ActionKind


def test_the_five_best_places_are_told_in_their_order() -> None:
    sizes = {"r-1": 6, "r-2": 3, "r-3": 5, "r-4": 2, "r-5": 4, "r-6": 9, "r-7": 8, "r-8": 7}
    fleet = [m for name, count in sizes.items() for m in rack(name, count)]
    plan = decide(fleet, [gang()]).plan
    names = plan.domain_names[int(plan.verdicts.domain_key[0])]
    assert [names[d] for d in plan.verdicts.best[0]] == ["r-4", "r-2", "r-5", "r-3", "r-1"]


def test_types_of_gangs_that_take_turns_in_one_slot_decide_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffers, "_SLOTS_BYTES", 0)
    fleet = [*rack("r-1", 4), *rack("r-2", 3), *rack("r-3", 3, labels={"pool": "x"})]
    rows = [
        replace(gang(group=f"g-{i}"), min_unit={"cpu": 1_000 * (1 + i % 3)}, arrival_ns=i)
        for i in range(6)
    ]
    outcome = decide(fleet, rows)
    assert sum(outcome.satisfied(i) for i in range(6)) == 4


def test_gangs_that_name_their_places_count_only_what_is_free_there() -> None:
    anywhere = gang(group="a")
    profile = Profile.of([label(RACK, "Same", "r-2")], priority=100)
    there = replace(gang(group="b"), profile=profile, arrival_ns=1)
    outcome = decide([*rack("r-1", 4), *rack("r-2", 5)], [anywhere, there])
    assert (outcome.domain(0), outcome.domain(1)) == ("r-1", "r-2")


def test_an_unstamped_machine_of_a_cluster_that_has_not_reported_does_not_yield() -> None:
    silent = {"c-silent": ClusterFacts(reported=False)}
    fleet = [machine("m-0", S.CONFIGURED, cluster="c-silent", rack="r-1"), *rack("r-1", 1)]
    outcome = decide(fleet, [gang(priority=1_000), need(B, cpu=64, priority=0)], facts=silent)
    assert outcome.reason() is Reason.TOPOLOGY_UNSATISFIABLE


@pytest.mark.parametrize("gpu", [0, 2])
def test_the_best_of_many_places_is_found_wherever_it_stands_among_them(gpu: int) -> None:
    # Fewer and fewer machines, so that each place is better than all before; with a second
    # resource the gang counts amounts and not whole units.
    sizes = [9, 8, 7, 6, 5, 4, 3, 2]
    fleet = [m for at, count in enumerate(sizes) for m in rack(f"r-{at}", count, gpu=1)]
    row = need(A, cpu=8, unit=4, same=RACK, gpu=gpu)
    plan = decide(fleet, [row]).plan
    names = plan.domain_names[int(plan.verdicts.domain_key[0])]
    assert [names[d] for d in plan.verdicts.best[0]] == ["r-7", "r-6", "r-5", "r-4", "r-3"]


def test_gangs_that_shun_different_racks_count_what_is_free_for_each() -> None:
    nowhere = label("pool", "In", "none")
    rows = []
    for priority, shunned in ((400, "r-2"), (200, "r-3")):
        rows.append(need(priority=priority, where=[nowhere, label(RACK, "NotIn", "r-9")]))
        shuns = [label(RACK, "NotIn", "r-1"), label(RACK, "NotIn", shunned)]
        rows.append(need(cpu=8, unit=4, same=ZONE, where=shuns, priority=priority - 100))
    outcome = decide([*rack("r-2", 2), *rack("r-3", 2, zone="z-2")], rows)
    assert (outcome.domain(1), outcome.domain(3)) == ("z-2", "z-1")
    assert outcome.satisfied(1)
    assert outcome.satisfied(3)


@pytest.mark.parametrize(("most_bytes", "slots"), [(0, 1), (1 << 20, 3)])
def test_sums_for_types_of_gangs_have_bounded_room(
    most_bytes: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def kept(*args: Any) -> Any:
        made.append(buffers.make_scratch(*args))
        return made[-1]

    monkeypatch.setattr(buffers, "_SLOTS_BYTES", most_bytes)
    monkeypatch.setattr(engine, "make_scratch", kept)
    rows = [replace(gang(group=f"g-{i}"), min_unit={"cpu": 1_000 * (1 + i % 3)}) for i in range(6)]
    decide(rack("r-1", 4), rows)
    assert [len(scratch.slot_type) for scratch in made] == [slots]


def test_a_gang_that_asks_for_nothing_any_more_takes_nothing_and_holds_nothing() -> None:
    row = replace(gang(), aggregate={})
    fleet = [serving("m-1", row, rack="r-1"), *rack("r-1", 1)]
    outcome = decide(fleet, [row])
    assert outcome.satisfied()
    assert outcome.does == {"m-1": K.RECLAIM}


def test_what_one_gang_meant_to_take_and_left_helps_to_complete_another() -> None:
    inside = [label("pool", "In", "x")]
    first = need(cpu=12, unit=4, same=RACK, where=inside, group="g-1", priority=500)
    second = gang(group="g-2", priority=400)
    plain, low = need(priority=1_000, where=inside), need(B, priority=0)
    fleet = [
        serving("m-home", first, rack="r-1", labels={"pool": "x"}),
        *rack("r-1", 2, labels={"pool": "x"}),
        serving("m-low", low, rack="r-1"),
    ]
    # The plain need takes one of the two that the first gang lacks, which then takes none.
    outcome = decide(fleet, [plain, first, second, low])
    assert outcome.serves(1) == {"m-home"}
    assert outcome.does == {
        "m-r-1-0": K.BOOTSTRAP,
        "m-r-1-1": K.BOOTSTRAP,
        "m-low": K.PREEMPT,
    }


def test_what_a_gang_can_credit_is_not_counted_again_as_what_might_yield() -> None:
    # One group asks twice, at two priorities: what is stamped for the lower serves the higher.
    high, low, other = gang(cpu=12, priority=1_000), gang(priority=100), need(B)
    fleet = [serving("m-other", other), *(serving(f"m-{i}", low, rack="r-1") for i in range(2))]
    outcome = decide([*fleet, *rack("r-2", 1)], [high, low, other])
    assert not outcome.plan.verdicts.satisfiable[outcome.row(0)]
    assert outcome.reason() is Reason.TOPOLOGY_UNSATISFIABLE


@pytest.mark.parametrize("picky", [(0, 2), (1,)])
def test_a_type_of_gang_that_gets_its_slot_back_counts_again(
    picky: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "_SLOTS_BYTES", 0)
    fleet = [*rack("r-1", 7, labels={"pool": "x"}), *rack("r-2", 4)]
    where = [[label("pool", "In", "x")] if i in picky else [] for i in range(3)]
    rows = [
        need(cpu=8, unit=4, same=RACK, where=where[i], group=f"g-{i}", priority=300 - i)
        for i in range(3)
    ]
    outcome = decide(fleet, rows)
    assert [outcome.domain(i) for i in range(3)] == [
        "r-1" if i in picky else "r-2" for i in range(3)
    ]


def test_a_gang_counts_once_what_gangs_that_folded_hold_and_what_they_have_left() -> None:
    # One of the lower two is of the same group: their row holds two machines, a third is left over.
    high = gang(cpu=24, group="g-1", priority=1_000)
    lower = [gang(cpu=8, group=f"g-{i}", priority=100) for i in (1, 2)]
    stamped = (lower[0], lower[1], lower[1])
    fleet = [serving(f"m-{i}", row, cpu=8, rack="r-1") for i, row in enumerate(stamped)]
    outcome = decide(fleet, [high, *lower])
    assert outcome.serves(0) == {"m-0", "m-1", "m-2"}
    assert outcome.satisfied(0)
    assert outcome.plan.verdicts.satisfiable[outcome.row(0)]


@pytest.mark.parametrize("priority", [100, 7])
def test_a_machine_that_matches_no_longer_does_not_hold_its_gang(priority: int) -> None:
    row, before = (
        need(cpu=8, unit=4, same=RACK, where=[label("pool", "In", "x")], priority=p)
        for p in (100, priority)
    )
    fleet = [
        serving("m-old", before, rack="r-1", labels={"pool": "y"}),
        *rack("r-1", 1, labels={"pool": "x"}),
        *rack("r-2", 2, labels={"pool": "x"}),
    ]
    assert decide(fleet, [row]).domain() == "r-2"


def test_gangs_without_a_place_stay_unmet_however_they_differ() -> None:
    held = need(B, cpu=4_000, unit=4, priority=1_000)
    fleet = [serving(f"m-{i:05d}", held, rack=f"r-{i // 50}") for i in range(1_000)]
    rows = [replace(gang(group=f"g-{i}", cpu=400), min_unit={"cpu": 1_000 + i}) for i in range(50)]
    shard = Living(facts={A: ClusterFacts(), B: ClusterFacts()})
    for cycle in range(2):
        plan = shard.plan(fleet, [held, *rows], NOW + cycle)
        assert int((~plan.verdicts.satisfied).sum()) == len(rows)
