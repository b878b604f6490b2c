"""Three owners keep machines out of decisions; none of them ends what another one began."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pytest

from bigfleet.model.columns import KEPT_OUT, Demand, Symbols
from bigfleet.scenario.document import parse_scenario
from bigfleet.shard.explain.scenario_export import scenario_pieces
from bigfleet.shard.machines.book import Book
from bigfleet.shard.peers.donations import MachineFilter, free_machines
from bigfleet.shard.peers.report import summarise
from clocks import HandClock
from worlds import S, machine

OWNERS = ("excluded", "reserved", "backing_off")
Setter = Callable[[Book, str, bool], object]


def _back_off(book: Book, name: str, waits: bool) -> None:
    others = {m.id for m in book if m.backing_off and m.id != name}
    book.back_off(others | {name} if waits else others)


SETTERS: dict[str, Setter] = {
    "excluded": Book.exclude,
    "reserved": Book.reserve,
    "backing_off": _back_off,
}


def book_of(*names: str, **how: bool) -> Book:
    book = Book(Symbols(), HandClock())
    for name in names:
        book.take(machine(name))
        for owner, marked in how.items():
            SETTERS[owner](book, name, marked)
    return book


def owners_of(book: Book, name: str) -> set[str]:
    known = book.get(name)
    assert known is not None
    return {owner for owner in OWNERS if getattr(known, owner)}


@pytest.mark.parametrize(("ended", "other"), list(itertools.permutations(OWNERS, 2)))
def test_ending_one_reason_does_not_end_another(ended: str, other: str) -> None:
    for first, second in ((ended, other), (other, ended)):
        book = book_of("m-1")
        SETTERS[first](book, "m-1", True)
        SETTERS[second](book, "m-1", True)
        SETTERS[ended](book, "m-1", False)
        assert owners_of(book, "m-1") == {other}
        assert book.snapshot().flags[0] & KEPT_OUT


@pytest.mark.parametrize("owner", OWNERS)
def test_what_a_provider_reports_ends_no_reason(owner: str) -> None:
    book = book_of("m-1", **{owner: True})
    book.take(machine("m-1", price=3.0))
    assert owners_of(book, "m-1") == {owner}


def test_a_back_off_of_a_machine_that_vanished_is_not_that_of_its_successor() -> None:
    book = book_of("m-1", backing_off=True)
    book.vanish("m-1")
    book.take(machine("m-1"))
    assert owners_of(book, "m-1") == set()
    book.back_off(["m-1"])
    assert owners_of(book, "m-1") == {"backing_off"}


def test_any_sequence_of_the_three_owners_leaves_what_each_of_them_last_said() -> None:
    for seed in range(200):
        rng = Random(seed)
        names = [f"m-{number}" for number in range(rng.randint(1, 6))]
        book = book_of(*names)
        wanted = {(owner, name): False for owner in OWNERS for name in names}
        for _ in range(rng.randint(1, 40)):
            owner, name, marked = rng.choice(OWNERS), rng.choice(names), rng.random() < 0.5
            SETTERS[owner](book, name, marked)
            wanted[owner, name] = marked
            for one in names:
                assert owners_of(book, one) == {o for o in OWNERS if wanted[o, one]}, seed


def _spare(**how: bool) -> int:
    summary = summarise(book_of("m-1", **how).snapshot(), "s", "")
    return sum(row.idle for row in summary.free_by_class)


def test_a_report_counts_machines_in_back_off_as_spare_and_others_kept_out_not() -> None:
    assert _spare() == 1
    assert _spare(backing_off=True) == 1
    assert _spare(excluded=True) == 0
    assert _spare(reserved=True) == 0


@pytest.mark.parametrize(
    ("owner", "exported"), [("excluded", 0), ("reserved", 0), ("backing_off", 1)]
)
def test_a_scenario_has_machines_in_back_off_and_none_that_are_not_to_be_used(
    owner: str, exported: int
) -> None:
    book = book_of("m-1", **{owner: True})
    demand = Demand.of([], {}, book.symbols)
    pieces = scenario_pieces(book.snapshot(), demand, "s")
    assert parse_scenario(b"".join(pieces).decode()).machine_count == exported


def test_machines_in_back_off_are_given_away_last_and_others_kept_out_never() -> None:
    book = book_of("m-1", "m-2", "m-3", "m-4")
    book.back_off(["m-1"])
    book.reserve("m-2", True)
    book.exclude("m-3", True)
    assert free_machines(book.snapshot(), MachineFilter(), S.IDLE) == ["m-4", "m-1"]
