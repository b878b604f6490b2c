"""Preempt for a need with spread: only what it may take once it is free."""

from bigfleet.decision import ActionKind
from bigfleet.model import Machine, Need, Profile, Spread, Stamp
from worlds import A, B, S, decide, machine, need, replace, serving

K = ActionKind
ZONE = "topology.kubernetes.io/zone"


def spread(cpu: int, skew: int = 1) -> Need:
    return need(A, cpu=cpu, unit=4, priority=1000, spread=(ZONE, skew))


def held(high: Need, *zones: str) -> list[Machine]:
    return [serving(f"a-{i}", high, zone=zone) for i, zone in enumerate(zones)]


def lower(*zones: str) -> tuple[Need, list[Machine]]:
    low = need(B, cpu=4 * len(zones), unit=4, priority=10)
    return low, [serving(f"b-{i}", low, zone=zone) for i, zone in enumerate(zones)]


def test_a_victim_is_looked_for_where_the_need_has_fewest() -> None:
    high, (low, victims) = spread(12), lower("z-a", "z-a", "z-b")
    outcome = decide([*held(high, "z-a", "z-a"), *victims], [high, low])
    assert outcome.does == {"b-2": K.PREEMPT}


def test_no_machine_is_preempted_in_a_zone_that_is_full_already() -> None:
    high, (low, victims) = spread(16), lower("z-a", "z-a")
    outcome = decide([*held(high, "z-a", "z-a", "z-b"), *victims], [high, low])
    assert outcome.does == {}
    assert not outcome.satisfied(0)
    wider = spread(16, skew=2)
    fleet = [*held(wider, "z-a", "z-a", "z-b"), *victims]
    assert decide(fleet, [wider, low]).does == {"b-0": K.PREEMPT}


def test_of_two_constraints_on_one_label_the_tighter_holds() -> None:
    low, victims = lower("z-a", "z-a")
    both = Profile.of((), [Spread(ZONE, 1), Spread(ZONE, 2)], priority=1000)
    high = replace(spread(16), profile=both)
    assert decide([*held(high, "z-a", "z-a", "z-b"), *victims], [high, low]).does == {}


def test_victims_of_one_cycle_count_for_each_other() -> None:
    high, (low, victims) = spread(16), lower("z-a", "z-a", "z-a", "z-b")
    outcome = decide(victims, [high, low])
    assert outcome.does == {"b-0": K.PREEMPT, "b-3": K.PREEMPT}


def test_excess_keeps_to_the_spread_too() -> None:
    high, gone = spread(12), need(B, group="gone")
    fleet = [
        *held(high, "z-a", "z-a"),
        serving("b-0", gone, zone="z-a", price=0.1),
        serving("b-1", gone, zone="z-b", price=9.0),
    ]
    assert decide(fleet, [high]).does["b-1"] is K.PREEMPT
    assert decide(fleet, [high]).does["b-0"] is not K.PREEMPT


def test_what_is_on_its_way_counts_where_it_comes_from() -> None:
    high, (low, victims) = spread(12), lower("z-b", "z-b", "z-c")
    coming = machine("b-0", S.CONFIGURED, zone="z-b", serves=low, leaving=True, leaves_for=high)
    outcome = decide([*held(high, "z-a"), coming, *victims[1:]], [high, low])
    assert outcome.does == {"b-2": K.PREEMPT}


def test_a_machine_without_the_label_is_not_a_victim() -> None:
    row = need(A, cpu=4, unit=4, priority=1000, spread=("row", 1))
    low = need(B, priority=10)
    assert decide([serving("m-1", low)], [row, low]).does == {}


def test_each_machine_that_is_freed_is_taken_and_no_other_victim_follows() -> None:
    """Cycle after cycle until nothing is left to do: one machine drains for each that lacks."""
    high, (low, fleet) = spread(12), lower("z-a", "z-a", "z-b", "z-b", "z-c", "z-c")
    preempted: set[str] = set()
    for _ in range(8):
        outcome = decide(fleet, [high, low])
        preempted |= {m for m, kind in outcome.does.items() if kind is K.PREEMPT}
        fleet = [_after(m, outcome.does.get(m.id), outcome.meant_for(m.id)) for m in fleet]
    assert len(preempted) == 3
    assert decide(fleet, [high, low]).satisfied(0)


def _after(m: Machine, done: ActionKind | None, meant: Stamp | None) -> Machine:
    if done is K.PREEMPT:
        return machine(m.id, S.IDLE, zone=m.zone).but(stamp=meant)
    if done is K.BOOTSTRAP:
        return m.but(state=S.CONFIGURED, cluster=A)
    return m
