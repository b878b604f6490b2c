"""Names from outside: which are taken, and that a text of any length is shown in a few words."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet_base.identifiers import (
    LONGEST_ID,
    IdentifierError,
    check_id,
    check_label_key,
    check_label_value,
    check_text,
    cut,
    is_id,
    shortened,
)

ALLOWED = string.ascii_letters + string.digits + "-_./:"
HOSTILE = [
    "c" * 60_000_000, "c\0", "c\r\nforged line", "../../etc/passwd", "c d", "é", "a/..", "./a",
    "..", "c" * 254,
]  # fmt: skip


@pytest.mark.parametrize(
    "value", ["c", "c-1", "eu/prod:blue", "s_1.example", "..a", "a..b", "c" * 253]
)
def test_ordinary_ids_are_taken(value: str) -> None:
    assert check_id(value, "cluster_id") == value


@pytest.mark.parametrize("value", HOSTILE, ids=lambda text: f"{len(text)} characters")
def test_hostile_ids_are_refused_in_few_words_that_name_field_and_remedy(value: str) -> None:
    with pytest.raises(IdentifierError, match=r"^cluster_id .*: use 1 to 253 letters") as caught:
        check_id(value, "cluster_id")
    assert len(str(caught.value)) < 700
    assert str(caught.value).isprintable()


def test_an_empty_id_is_required() -> None:
    with pytest.raises(IdentifierError, match="shard_id is empty: it is required"):
        check_id("", "shard_id")


@given(st.text(max_size=300))
def test_an_id_is_made_of_the_allowed_characters_and_never_climbs_out_of_a_folder(
    value: str,
) -> None:
    parts = value.split("/")
    expected = (
        1 <= len(value) <= LONGEST_ID
        and all(char in ALLOWED for char in value)
        and "." not in parts
        and ".." not in parts
    )
    assert is_id(value) is expected


@given(st.text(max_size=500))
def test_what_is_shown_of_a_text_is_short_and_printable(value: str) -> None:
    for shown in (shortened(value), cut(value)):
        assert len(shown) < 64 * 10 + 40
        assert shown.isprintable() or shown == value


def test_what_is_cut_says_how_long_it_was() -> None:
    assert cut("c-1") == "c-1"
    assert cut("c" * 65) == "'" + "c" * 64 + "'... (65 characters)"
    assert cut("a\nb") == r"'a\nb'"


@pytest.mark.parametrize(
    ("key", "taken"),
    [
        ("cpu", True), ("nvidia.com/gpu", True), ("topology.kubernetes.io/zone", True),
        ("a" * 63, True), ("a" * 64, False), (("a" * 63 + ".") * 3 + "b" * 61 + "/x", True),
        (("a" * 63 + ".") * 4 + "/x", False), ("-a", False), ("a-", False), ("a/b/c", False),
        ("/a", False), ("A.com/a", False), ("", False), ("a b", False), ("a\n", False),
    ],
)  # fmt: skip
def test_label_keys_keep_the_rules_of_kubernetes(key: str, taken: bool) -> None:
    if taken:
        assert check_label_key(key, "key") == key
    else:
        with pytest.raises(IdentifierError, match="Kubernetes' rules"):
            check_label_key(key, "key")


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("", True),
        ("eu-1a", True),
        ("v" * 63, True),
        ("v" * 64, False),
        ("v_", False),
        ("a/b", False),
    ],
)
def test_label_values_keep_the_rules_of_kubernetes(value: str, taken: bool) -> None:
    if taken:
        assert check_label_value(value, "value") == value
    else:
        with pytest.raises(IdentifierError, match="Kubernetes' rules"):
            check_label_value(value, "value")


def test_texts_that_are_only_compared_are_printable_and_bounded() -> None:
    assert check_text("ns/zone/{app in (a, b)}", "group")
    with pytest.raises(IdentifierError, match="at most 1024"):
        check_text("g" * 1025, "group")
    with pytest.raises(IdentifierError, match="control characters"):
        check_text("g\n", "group")
