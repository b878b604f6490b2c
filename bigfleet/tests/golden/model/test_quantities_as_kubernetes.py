"""Quantities against a table of Kubernetes' own answers.

Each row of quantities.json is what `resource.ParseQuantity` of the version named in it made of a
text: the canonical form (`CanonicalizeBytes`), the format, and the amount rounded up to milli and
to whole units (`RoundUp`). The texts on which we differ on purpose are listed apart, with why.
"""

import json
from pathlib import Path
from typing import TypedDict

import pytest

from bigfleet.model import QuantityError, parse_milli, parse_quantity


class Differing(TypedDict):
    text: str
    kubernetes: str
    ours: str | None
    why: str


class Table(TypedDict):
    accepted: list[tuple[str, str, str, int, int]]
    refused: list[str]
    differing: list[Differing]


TABLE: Table = json.loads(Path(__file__).with_name("quantities.json").read_text())


def test_every_text_kubernetes_accepts_means_and_prints_the_same_here() -> None:
    ours = [
        (text, str(q), q.format.value, q.milli(), q.value())
        for text, *_ in TABLE["accepted"]
        for q in [parse_quantity(text)]
    ]
    assert ours == [tuple(row) for row in TABLE["accepted"]]


def test_every_canonical_form_of_kubernetes_is_read_back_unchanged() -> None:
    for _, canonical, _, milli, _ in TABLE["accepted"]:
        assert str(parse_quantity(canonical)) == canonical
        assert parse_milli(canonical) == milli


@pytest.mark.parametrize("text", TABLE["refused"])
def test_every_text_kubernetes_refuses_is_refused_here(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("row", TABLE["differing"], ids=lambda row: row["text"])
def test_the_texts_on_which_we_differ_are_known(row: Differing) -> None:
    try:
        ours = str(parse_quantity(row["text"]))
    except QuantityError:
        ours = None
    assert ours == row["ours"]
    assert ours != row["kubernetes"]


def test_the_table_is_large_enough_to_be_an_oracle() -> None:
    assert len(TABLE["accepted"]) > 500
    assert len(TABLE["refused"]) > 50
