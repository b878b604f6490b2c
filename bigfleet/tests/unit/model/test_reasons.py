"""One table of reasons: every reason of the wire has words, and words say one thing."""

import pytest

from bigfleet.decision import Reason
from bigfleet.model.reasons import FAILING_CREATES, WHY, words
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet_api.v1alpha1 import shardread_pb2 as pb


def test_every_reason_of_the_wire_has_words_of_its_own() -> None:
    on_the_wire = dict(pb.UnmetReason.items())
    assert int(on_the_wire.pop("UNMET_REASON_UNSPECIFIED")) == int(Reason.NONE)
    assert on_the_wire == {f"UNMET_REASON_{r.name}": int(r) for r in Reason if r}
    assert WHY.keys() == set(Reason)
    assert len(set(WHY.values())) == len(Reason)


def test_every_class_of_failing_creates_has_words_of_its_own() -> None:
    assert FAILING_CREATES.keys() == set(CreateFailure)
    assert len(set(FAILING_CREATES.values())) == len(CreateFailure)


@pytest.mark.parametrize("named", [Reason.QUOTA, "QUOTA", 100])
def test_a_reason_is_found_by_value_name_and_number(named: Reason | str | int) -> None:
    assert words(named) == WHY[Reason.QUOTA]


@pytest.mark.parametrize("named", ["NEWS", 4711])
def test_a_reason_of_a_newer_shard_is_named(named: str | int) -> None:
    assert words(named) == f"for a reason this version does not know ({named})"


def test_titles_are_those_of_conditions() -> None:
    assert Reason.PRIORITY_STARVED.title == "PriorityStarved"
