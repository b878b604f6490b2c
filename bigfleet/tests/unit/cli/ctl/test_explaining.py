"""Why a need is unmet: every reason of the wire has words, every remedy was tried."""

import pytest

from bigfleet.cli.ctl.shards.need_explanation import NeedOfShard, lines, need_document
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from ctlfleet import NOW
from ctlworld import explained, need, unmet, wish

REASONS = [name.removeprefix("UNMET_REASON_") for name in pb.UnmetReason.keys()]  # noqa: SIM118


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_words(reason: str) -> None:
    seen = NeedOfShard("s-1", unmet(need("shop", 5, "8"), reason, 2, cpu="4"), NOW, " --shard s-1")
    told = dict(lines(seen))
    assert told["why"]
    assert told["lacks"] == "cpu 4"
    assert told["since"] == "10 min"


def test_a_reason_of_a_newer_shard_is_not_hidden() -> None:
    view = unmet(need("shop", 5, "8"), "PAUSED", 1)
    view.unmet_reason = pb.UnmetReason.ValueType(4711)
    seen = NeedOfShard("s-1", view, NOW)
    assert seen.verdict() == "unmet for 1 cycle: 4711"
    assert "does not know (4711)" in seen.why()
    assert seen.next_step() == ""


def test_the_next_step_names_what_to_type() -> None:
    paused = unmet(need("shop", 5, "8"), "PAUSED", 1)
    named = NeedOfShard("s-1", paused, NOW, " --shard s-1")
    assert named.next_step() == "`bigfleetctl resume --shard s-1` ends the pause"
    assert "`bigfleetctl resume`" in NeedOfShard("127.0.0.1:7780", paused, NOW).next_step()
    quota = unmet(need("shop", 5, "8"), "QUOTA", 1)
    assert "bigfleetctl list-quotas" in NeedOfShard("s-1", quota, NOW).next_step()


def test_what_would_help_is_what_the_shard_tried_and_nothing_else() -> None:
    view = unmet(need("shop", 5, "8", wish("pool", "IN", "gpu")), "NO_MATCHING_SUPPLY", 1)
    assert NeedOfShard("s-1", view, NOW).helps() == [
        "not tried: leave out --no-remedies, or upgrade shard s-1"
    ]
    explained(
        *(view, "its requirement pool In [gpu]"),
        ("drop the requirement pool In [gpu]", "met"),
        ("ask for cpu 4 in all", "2 of 4 cpu"),
    )
    view.explanation.not_tried = 3
    told = lines(NeedOfShard("s-1", view, NOW))
    assert ("blocked by", "its requirement pool In [gpu]") in told
    at = told.index(("would help", "drop the requirement pool In [gpu]: met"))
    assert told[at + 1 :] == [
        ("", "ask for cpu 4 in all: 2 of 4 cpu"),
        ("", "(3 more possible changes not tried)"),
    ]


def test_a_search_without_a_find_says_so_and_an_unfinished_one_does_not() -> None:
    view = explained(unmet(need("a", 5, "8"), "NO_MATCHING_SUPPLY", 1), "more than two things")
    assert NeedOfShard("s-1", view, NOW).helps() == ["no change that was tried gets it further"]
    view.explanation.incomplete = True
    assert NeedOfShard("s-1", view, NOW).helps() == []


def test_programs_get_the_effect_of_every_change() -> None:
    view = explained(
        *(unmet(need("a", 5, "8"), "PRIORITY_STARVED", 1, cpu="8"), "its priority"),
        ("raise its priority to 101", "met"),
    )
    remedy = view.explanation.remedies[0]
    remedy.become_unmet.add(priority=100, count=2)
    remedy.machines_preempted = 2
    found = need_document(NeedOfShard("s-1", view, NOW))["explanation"]
    assert isinstance(found, dict)
    assert found["complete"] is True
    assert found["remedies"][0]["met"] is True
    assert found["remedies"][0]["become_unmet"] == [{"priority": 100, "count": 2}]


def test_a_gang_stays_at_its_shard() -> None:
    gang = unmet(need("lab", 500, "8", wish("rack", "SAME")), "TOPOLOGY_UNSATISFIABLE", 9)
    assert (
        NeedOfShard("s-1", gang, NOW).tried()[-1]
        == "kept at this shard: a gang never crosses shards"
    )


def test_a_met_need_has_no_reason_for_anybody() -> None:
    seen = NeedOfShard("s-1", need("shop", 5, "8"), NOW)
    assert seen.verdict() == "met"
    assert "why" not in need_document(seen)
