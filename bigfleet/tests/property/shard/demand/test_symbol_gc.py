"""Forgetting identities changes numbers, and nothing that anybody can see."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import Carry, Engine
from bigfleet.inventory import Inventory
from bigfleet.model import Stamp
from bigfleet.model.columns import Demand, Symbols
from bigfleet.shard.demand.ingest import Ingest
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.demand.symbol_gc import SymbolCollector
from bigfleet.shard.machines.book import Book
from clocks import HandClock
from compare import actions_of, fast_plan, stamps_of
from executing_values import machine, stamp
from fleets import NOW, case
from rollups import rollup, row

T = TypeVar("T")


class Place:
    """A book and a needs table of one cluster, whose jobs come and go."""

    def __init__(self, unused: int = 4) -> None:
        symbols, self.clock = Symbols(), HandClock()
        self.book = Book(symbols, self.clock)
        self.needs = NeedsTable(symbols, self.clock.now)
        self.ingest = Ingest()
        self.meanwhile: Callable[[], object] = lambda: None
        self.forgetting = SymbolCollector(self.book, self.needs, self.offload, unused)

    async def offload(self, function: Callable[[], T]) -> T:
        answer = function()
        self.meanwhile()
        return answer

    def ask(self, *groups: str) -> Demand:
        rows = [row(f"p-{g[-1]}", group=g) for g in groups]
        self.needs.apply("c-1", self.ingest.read(rollup(*rows, at=self.clock.now())))
        return self.needs.demand({})


def rows_of(demand: Demand) -> list[Stamp]:
    return [demand.symbols.stamp(i, 0) for i in demand.identity.tolist()]


async def test_jobs_that_are_over_are_forgotten_and_those_that_are_not_stay() -> None:
    place = Place()
    for number in range(30):
        place.ask(f"job-{number}")
    place.book.take(machine("m-1", stamp=stamp(group="job-3", sequence=7)))
    before, old = place.needs.demand({}), place.book.symbols
    unmet = np.zeros(old.identity_count, np.int64)
    unmet[before.identity] = 5
    carry = await place.forgetting.tidied(Carry(unmet_since=unmet, last_sequence=9))
    assert place.book.symbols.identity_count == 2
    assert len(place.book.symbols.texts) < len(old.texts)
    after = place.needs.demand({})
    assert rows_of(after) == rows_of(before)
    assert carry.unmet_since[after.identity].tolist() == [5]
    assert (len(carry.unmet_since), carry.last_sequence) == (2, 9)
    kept = place.book.get("m-1")
    assert kept is not None
    assert kept.stamp == stamp(group="job-3", sequence=7)
    assert [s.group for s in rows_of(place.ask("job-29", "job-0"))] == ["job-29", "job-0"]


async def test_nothing_is_done_while_most_identities_are_in_use() -> None:
    place = Place()
    place.ask(*(f"job-{number}" for number in range(30)))
    symbols = place.book.symbols
    await place.forgetting.tidied(Carry())
    assert place.book.symbols is symbols


async def test_a_stamp_that_comes_back_in_the_meantime_is_not_lost() -> None:
    place = Place()
    for number in range(30):
        place.ask(f"job-{number}")
    back, new = place.book.symbols.stamp(5, 3), stamp(group="never-heard-of")
    place.book.take(machine("m-1"))

    def meanwhile() -> None:
        place.book.take(machine("m-1", stamp=back))
        place.book.take(machine("m-2", stamp=new))

    place.meanwhile = meanwhile
    await place.forgetting.tidied(Carry())
    for name, expected in (("m-1", back), ("m-2", new)):
        found = place.book.get(name)
        assert found is not None
        assert found.stamp == expected


async def test_plans_made_before_stay_readable() -> None:
    place = Place()
    for number in range(30):
        place.ask(f"job-{number}")
    place.book.take(machine("m-1", stamp=stamp(group="job-3")))
    fleet, demand = place.book.snapshot(), place.needs.demand({})
    said = rows_of(demand)
    await place.forgetting.tidied(Carry())
    assert fleet.symbols.stamp(int(fleet.stamp[0]), 1).group == "job-3"
    assert rows_of(demand) == said
    assert place.book.snapshot().symbols is place.book.symbols


@given(st.integers(0, 2**32))
def test_the_plan_is_the_same_under_other_numbers(seed: int) -> None:
    drawn, rng = case(seed), Random(seed)
    expected = fast_plan(drawn)
    symbols = Symbols()
    for number in range(rng.randint(1, 40)):
        symbols.identity(stamp(f"c-{number % 3}", f"gone-{number}"))
    inventory = Inventory(symbols)
    inventory.load(drawn.machines)
    demand = Demand.of(drawn.needs, drawn.facts, symbols)
    fleet = inventory.snapshot()
    numbers = np.concatenate([fleet.stamp, fleet.leaving_for, demand.identity])
    fresh, moved = symbols.keeping(np.unique(numbers[numbers >= 0]))
    inventory.renumber(fresh, moved)
    assert sorted(inventory, key=lambda m: m.id) == sorted(drawn.machines, key=lambda m: m.id)
    carry = Carry(stock_outs=expected.carry.stock_outs, drain_seconds=drawn.drain_seconds)
    plan = Engine().decide(
        inventory.snapshot(), Demand.of(drawn.needs, drawn.facts, fresh), drawn.policy, carry, NOW
    )
    assert actions_of(plan) == actions_of(expected)
    assert stamps_of(plan) == stamps_of(expected)


@pytest.mark.parametrize("count", [0, 1])
def test_symbols_of_nothing(count: int) -> None:
    symbols = Symbols()
    for number in range(count):
        symbols.identity(stamp(group=f"g-{number}"))
    fresh, numbers = symbols.keeping(np.zeros(0, np.int64))
    assert (fresh.identity_count, numbers.tolist()) == (0, [-1] * count)
