"""Why a need is unmet: every reason of the wire has words and a remedy."""

import pytest

from bigfleet.cli.ctl.explaining import Seen, lines, need_document
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from ctlfleet import NOW
from ctlworld import need, unmet, wish

REASONS = [name.removeprefix("UNMET_REASON_") for name in pb.UnmetReason.keys()]  # noqa: SIM118


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_words_and_something_that_would_help(reason: str) -> None:
    seen = Seen("s-1", unmet(need("shop", 5, "8"), reason, 2, cpu="4"), NOW, " --shard s-1")
    assert seen.why()
    assert seen.help()
    told = dict(lines(seen))
    assert told["lacks"] == "cpu 4"
    assert told["since"] == "10 min"


def test_a_reason_of_a_newer_shard_is_not_hidden() -> None:
    view = unmet(need("shop", 5, "8"), "PAUSED", 1)
    view.unmet_reason = pb.UnmetReason.ValueType(4711)
    seen = Seen("s-1", view, NOW)
    assert seen.verdict() == "unmet for 1 cycle: 4711"
    assert "does not know (4711)" in seen.why()
    assert "log of shard s-1" in seen.help()


def test_the_remedy_names_what_to_type() -> None:
    paused = unmet(need("shop", 5, "8"), "PAUSED", 1)
    assert Seen("s-1", paused, NOW, " --shard s-1").help() == "`bigfleetctl resume --shard s-1`"
    assert Seen("127.0.0.1:7780", paused, NOW).help() == "`bigfleetctl resume`"
    quota = unmet(need("shop", 5, "8"), "QUOTA", 1)
    assert "bigfleetctl set-quota" in Seen("s-1", quota, NOW).help()


def test_requirements_that_leave_nothing_are_the_ones_to_relax() -> None:
    one = unmet(need("shop", 5, "8", wish("pool", "IN", "gpu")), "NO_MATCHING_SUPPLY", 1)
    assert Seen("s-1", one, NOW).help().startswith("relax pool In [gpu], or add machines")
    none = unmet(need("shop", 5, "8"), "NO_MATCHING_SUPPLY", 1)
    assert Seen("s-1", none, NOW).help().startswith("add machines with room for cpu 2")


def test_a_gang_without_candidates_needs_the_label() -> None:
    gang = unmet(need("lab", 5, "8", wish("rack", "SAME")), "TOPOLOGY_UNSATISFIABLE", 9)
    seen = Seen("s-1", gang, NOW)
    assert "the label that the gang shares" in seen.help()
    assert seen.tried()[-1] == "kept at this shard: a gang never crosses shards"


def test_a_met_need_has_no_reason_for_anybody() -> None:
    seen = Seen("s-1", need("shop", 5, "8"), NOW)
    assert seen.verdict() == "met"
    assert "why" not in need_document(seen)
