"""The shortfall ledger: what is unmet, by profile, for how long."""

import logging

import pytest

from bigfleet.model import Machine, Need
from bigfleet.observe.shard import ShortfallCounts
from bigfleet.shard.explain.ledger import Ledger
from living import Living
from worlds import NOW, RACK, ZONE, A, B, S, label, machine, need


class World:
    """A shard without machines to speak of, and its ledger."""

    def __init__(self) -> None:
        self.living = Living()
        self.ledger = Ledger()
        self.seconds = 0.0

    def cycle(
        self, *needs: Need, machines: tuple[Machine, ...] = (), seconds: float = 10.0
    ) -> bool:
        """A cycle so long after the last one."""
        self.seconds += seconds
        return self.ledger.update(self.living.plan(machines, needs, NOW), self.seconds)


@pytest.fixture
def world() -> World:
    return World()


def test_rows_of_one_profile_are_one_entry_and_their_deficits_add_up(world: World) -> None:
    world.cycle(need(A, cpu=4, unit=2), need(B, cpu=6, unit=3), need(B, cpu=1, priority=5))
    first, second = world.ledger.reported()
    assert first.deficit == {"cpu": 10_000}
    assert first.min_unit == {"cpu": 3_000}
    assert first.clusters == (A, B)
    assert second.deficit == {"cpu": 1_000}
    assert second.profile.priority == 5
    assert len(world.ledger) == 2


def test_cycles_that_follow_each_other_fast_do_not_make_a_shortfall_old(world: World) -> None:
    crossed = [world.cycle(need(cpu=4), seconds=0.2) for _ in range(50)]
    assert world.ledger.reported()[0].age_cycles == 2
    assert not any(crossed)
    assert world.cycle(need(cpu=4), seconds=60.0)
    assert world.ledger.reported()[0].age_cycles == 8


def test_a_tick_may_come_a_little_early(world: World) -> None:
    for seconds in (10.0, 9.5, 10.3, 9.9):
        world.cycle(need(cpu=4), seconds=seconds)
    assert world.ledger.reported()[0].age_cycles == 4


def test_age_counts_ticks_in_a_row(world: World) -> None:
    asked = need(cpu=4)
    for age in (1, 2, 3):
        world.cycle(asked)
        assert world.ledger.reported()[0].age_cycles == age
    world.cycle(asked, machines=(machine("m-1"),))
    assert world.ledger.reported() == []
    assert len(world.ledger) == 0
    world.cycle(asked)
    assert world.ledger.reported()[0].age_cycles == 1


def test_what_is_being_created_covers_a_need(world: World) -> None:
    asked = need(cpu=4)
    world.cycle(asked, machines=(machine("m-1", S.SPECULATIVE),))
    assert len(world.ledger) == 0


def test_an_entry_escalates_once_when_it_is_older_than_five_cycles(world: World) -> None:
    crossed = [world.cycle(need(cpu=4)) for _ in range(8)]
    assert crossed == [False] * 5 + [True] + [False] * 2


def test_the_highest_priority_and_then_the_oldest_come_first(world: World) -> None:
    old, young = need(cpu=1, priority=9), need(cpu=2, priority=9, interruption=3)
    low = need(cpu=3, priority=1)
    world.cycle(old, low)
    world.cycle(young, old, low)
    assert [s.profile for s in world.ledger.reported()] == [old.profile, young.profile, low.profile]


def test_no_more_are_reported_than_allowed(world: World) -> None:
    world.cycle(*(need(cpu=1, priority=n) for n in range(130)))
    reported = world.ledger.reported()
    assert len(reported) == 100
    assert [s.profile.priority for s in reported] == list(range(129, 29, -1))
    assert len(world.ledger) == 130


def test_a_gang_is_marked_as_bound_to_one_place(world: World) -> None:
    world.cycle(need(cpu=4, same=RACK), need(cpu=4, where=[label("pool", "In", "x")]))
    assert sorted(s.topology_constrained for s in world.ledger.reported()) == [False, True]


def test_each_cycle_with_unmet_demand_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    needs = [need(cpu=1, priority=n) for n in range(4)]
    with caplog.at_level(logging.WARNING, "bigfleet.shard"):
        world.cycle(*needs[:2])
        world.cycle(*needs)
        world.cycle()
    first, second = (r for r in caplog.records if r.message == "shortfalls detected")
    assert first.__dict__["count"] == 2
    assert second.__dict__["count"] == 4
    oldest = [needs[1], needs[0], needs[3]]
    assert second.__dict__["top_fingerprints"] == [n.profile.fingerprint for n in oldest]


def test_counts_are_two_partitions_of_the_entries(world: World) -> None:
    old = [need(cpu=1, priority=p) for p in (2_000_000, 1_000)]
    for _ in range(9):
        world.cycle(*old)
    world.cycle(*old, *(need(cpu=1, priority=p) for p in (1_000_000, 999, 100, 99, -5)))
    assert world.ledger.counts() == ShortfallCounts(7, (2, 1, 2, 2), (5, 2, 0, 0))
    for _ in range(50):
        world.cycle(*old)
    assert world.ledger.counts() == ShortfallCounts(2, (1, 1, 0, 0), (0, 0, 2, 0))
    for _ in range(240):
        world.cycle(*old)
    assert world.ledger.counts().by_age == (0, 0, 0, 2)


def test_amounts_beyond_64_bits_are_exact(world: World) -> None:
    huge = 2**55
    rows = [need(f"c-{n}", cpu=1, unit=1, memory=huge) for n in range(20)]
    world.cycle(*rows)
    assert world.ledger.reported()[0].deficit["memory"] == 20 * huge * 1000


def test_ages_survive_new_symbols(world: World) -> None:
    world.cycle(need(cpu=1, priority=7), need(cpu=4))
    world.living = Living()
    world.cycle(need(cpu=4))
    assert world.ledger.reported()[0].age_cycles == 2


def test_what_is_unmet_is_told_by_cluster_and_profile(world: World) -> None:
    assert not world.ledger.unmet()
    common, mine, theirs = need(A, cpu=4), need(A, cpu=1, priority=5), need(B, cpu=4)
    world.cycle(common, mine, theirs)
    lacking = {(n.cluster, n.profile.fingerprint) for n in (common, mine, theirs)}
    assert set(world.ledger.unmet()) == lacking
    world.cycle(common, theirs, machines=(machine("m-1", S.CONFIGURED, serves=common),))
    unmet = world.ledger.unmet()
    assert set(unmet) == {(B, theirs.profile.fingerprint)}
    assert (A, theirs.profile.fingerprint) not in unmet
    assert ("c-unknown", theirs.profile.fingerprint) not in unmet
    assert (B, "0" * 32) not in unmet


def test_of_gangs_that_are_one_row_every_profile_is_unmet(world: World) -> None:
    gangs = [need(A, cpu=4, unit=1, same=key, group=f"g-{key}") for key in (RACK, ZONE)]
    world.cycle(*gangs, machines=(machine("m-1", rack="r-1"),))
    assert len(world.ledger) == 1
    assert set(world.ledger.unmet()) == {(A, gang.profile.fingerprint) for gang in gangs}
