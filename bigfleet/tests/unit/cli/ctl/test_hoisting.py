"""Global options wherever they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.cli.ctl.context import addresses
from bigfleet.cli.ctl.groups import hoist
from bigfleet.cli.errors import InputError

VALUED, SWITCHES = {"--output", "-o"}, {"--quiet"}


@pytest.mark.parametrize(
    ("words", "hoisted"),
    [
        ("list-shards --output json", "--output json list-shards"),
        ("list-shards --output=json", "--output=json list-shards"),
        ("pause --shard s-1 -o json --quiet", "-o json --quiet pause --shard s-1"),
        ("--output json list-shards", "--output json list-shards"),
        ("remove-shard -- --quiet", "remove-shard -- --quiet"),
        ("list-shards --outputs x", "list-shards --outputs x"),
        ("", ""),
    ],
)
def test_global_options_come_first_and_nothing_else_moves(words: str, hoisted: str) -> None:
    assert hoist(words.split(), VALUED, SWITCHES) == hoisted.split()


@given(st.lists(st.sampled_from(["a", "--quiet", "--output", "json", "--", "--output=x", "b"])))
def test_no_word_is_lost_and_commands_keep_their_order(words: list[str]) -> None:
    try:
        moved = hoist(words, VALUED, SWITCHES)
    except InputError:
        assert words[-1] == "--output"
        return
    assert sorted(moved) == sorted(words)
    assert hoist(moved, VALUED, SWITCHES) == moved


def test_addresses_may_be_repeated_or_joined_and_are_taken_once() -> None:
    given_twice = ["a:1,b:2", " b:2 ", "[::1]:3", ""]
    assert addresses(given_twice, "--coordinator") == ("a:1", "b:2", "[::1]:3")
    assert addresses(None, "--coordinator") == ()


@pytest.mark.parametrize("text", ["a", ":1", "a:", "a:b", "a:0", "a:65536", "a:-1"])
def test_what_is_no_address_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(InputError, match="write --coordinator host:port"):
        addresses([text], "--coordinator")
