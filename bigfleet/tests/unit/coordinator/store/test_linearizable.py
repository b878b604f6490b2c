"""The checker of histories: examples that everybody agrees on."""

from __future__ import annotations

from linearizable import (
    ASSIGN,
    DONE,
    READ,
    REFUSED,
    UNASSIGN,
    Operation,
    first_violation,
    is_linearizable,
)


def assign(shard: str, asked: float, answered: float, answer: str = DONE) -> Operation:
    return Operation("k", ASSIGN, shard, asked, answered, answer)


def read(shard: str | None, asked: float, answered: float) -> Operation:
    return Operation("k", READ, shard, asked, answered)


def test_one_after_the_other_is_fine() -> None:
    assert is_linearizable([assign("a", 0, 1), read("a", 2, 3)])


def test_a_read_that_comes_after_a_write_sees_it() -> None:
    assert not is_linearizable([assign("a", 0, 1), read(None, 2, 3)])


def test_a_read_during_a_write_sees_either() -> None:
    assert is_linearizable([assign("a", 0, 3), read(None, 1, 2)])
    assert is_linearizable([assign("a", 0, 3), read("a", 1, 2)])


def test_reads_never_go_back() -> None:
    assert not is_linearizable([assign("a", 0, 9), read("a", 1, 2), read(None, 3, 4)])


def test_two_shards_never_both_get_a_key() -> None:
    assert not is_linearizable([assign("a", 0, 5), assign("b", 1, 4)])
    assert is_linearizable([assign("a", 0, 5), assign("b", 1, 4, REFUSED)])
    assert is_linearizable([assign("a", 0, 5, REFUSED), assign("b", 1, 4)])


def test_a_refusal_needs_a_reason() -> None:
    assert not is_linearizable([assign("a", 0, 1, REFUSED)])


def test_what_got_no_answer_may_have_happened_or_not() -> None:
    lost = Operation("k", ASSIGN, "a", 0)
    assert is_linearizable([lost, read("a", 1, 2)])
    assert is_linearizable([lost, read(None, 1, 2)])
    assert is_linearizable([lost, read(None, 1, 2), read("a", 3, 4)])
    assert not is_linearizable([lost, read("a", 1, 2), read(None, 3, 4)])


def test_a_loss_of_an_acknowledged_write_is_found() -> None:
    history = [
        assign("a", 0, 1),
        Operation("k", UNASSIGN, None, 2, 3),
        assign("b", 4, 5),
        read("a", 6, 7),
    ]
    assert not is_linearizable(history)


def test_keys_are_checked_apart_and_the_wrong_one_is_named() -> None:
    good = Operation("a", READ, None, 0, 1)
    wrong = Operation("b", READ, "s", 0, 1)
    assert first_violation([good, wrong]) == (wrong,)
    assert first_violation([good]) is None


def test_thousands_of_operations_of_a_few_at_a_time_are_checked_quickly() -> None:
    history = []
    for at in range(2_000):
        history += [assign("a", 4 * at, 4 * at + 2), read("a", 4 * at + 1, 4 * at + 3)]
    assert is_linearizable(history)
    assert not is_linearizable([*history, read("b", 9_000, 9_001)])
