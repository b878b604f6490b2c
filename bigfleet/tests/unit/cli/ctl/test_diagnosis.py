"""What is wrong with a fleet, from its overview alone."""

from dataclasses import replace

import pytest

from bigfleet.cli.ctl.render.formats import SECOND
from bigfleet.cli.ctl.status.diagnosis import LATE_SECONDS, Problem, Weight, diagnose
from bigfleet.cli.ctl.status.overview import (
    FailingInstruction,
    MachineCounts,
    MissingDemand,
    Overview,
    Provider,
    Replica,
    ReplicaRole,
    ShardLook,
)

NOW = 10_000 * SECOND
SOUND = ShardLook(
    "s-1",
    "s-1:7780",
    heard_ns=NOW,
    epoch=1,
    cycle=9,
    sessions=("shop",),
    providers=(Provider("aws", True, 5),),
)
FLEET = Overview(
    now=NOW,
    replicas=(Replica("c-1:7790", ReplicaRole.LEADS), Replica("c-2:7790", ReplicaRole.FOLLOWS)),
    shards=(SOUND,),
    bindings={"shop": "s-1"},
)


def only(view: Overview) -> Problem:
    (problem,) = diagnose(view)
    return problem


def test_a_sound_fleet_has_no_problem() -> None:
    assert diagnose(FLEET) == []


@pytest.mark.parametrize(
    ("change", "weight", "what", "remedy"),
    [
        (
            {"heard_ns": NOW - (LATE_SECONDS + 1) * SECOND},
            Weight.WARNING,
            "has not reported for 31 s",
            "--coordinator-addr",
        ),
        ({"heard_ns": 0}, Weight.WARNING, "has not reported to this leader yet", "log"),
        ({"trouble": "no way"}, Weight.WARNING, "s-1 cannot be asked how it is", "no way"),
        (
            {"trouble": "no way", "heard_ns": 0},
            Weight.ERROR,
            "s-1 does not answer and has not reported",
            "bigfleetctl remove-shard s-1",
        ),
        ({"trouble": "no way", "heard_ns": None}, Weight.ERROR, "cannot be asked", "no way"),
        (
            {"paused": True, "pause_reason": "why", "rails": ("paused: why",)},
            Weight.WARNING,
            "s-1 is paused (why)",
            "bigfleetctl resume --shard s-1",
        ),
        ({"dry_run": True, "rails": ("dry-run: x",)}, Weight.WARNING, "runs dry", "--dry-run"),
        ({"cycle": 0}, Weight.WARNING, "has not decided yet", "log"),
        ({"providers": ()}, Weight.ERROR, "has no provider", "register-provider"),
        (
            {"providers": (Provider("aws", False, 0, "gone"),)},
            Weight.ERROR,
            "provider aws cannot be reached by shard s-1: gone",
            "list-providers",
        ),
        ({"rails": ("fenced at provider aws",)}, Weight.ERROR, "another process", "once"),
        (
            {"rails": ("mass disappearance at provider aws: 9 machines held",)},
            Weight.ERROR,
            "9 machines held",
            "check the provider",
        ),
        (
            {"counted": MachineCounts({"Failed": 2})},
            Weight.WARNING,
            "2 machines of shard s-1 failed",
            "list-machines --shard s-1 --state failed",
        ),
        (
            {"counted": MachineCounts(trouble="too slow")},
            Weight.WARNING,
            "not all counted",
            "too slow",
        ),
    ],
)
def test_each_trouble_of_a_shard_is_one_problem_with_a_remedy(
    change: dict[str, object], weight: Weight, what: str, remedy: str
) -> None:
    problem = only(replace(FLEET, shards=(replace(SOUND, **change),), bindings={}))  # type: ignore[arg-type]
    assert problem.weight is weight
    assert what in problem.what
    assert remedy in problem.remedy


def test_limits_that_only_inform_are_no_problem() -> None:
    shard = replace(SOUND, rails=("spend limit: $5.00/h of elastic capacity",))
    assert diagnose(replace(FLEET, shards=(shard,))) == []


def test_a_silent_coordinator_and_an_empty_fleet_are_told() -> None:
    gone = Replica("c-2:7790", ReplicaRole.SILENT, "no process listens there")
    problem = only(replace(FLEET, replicas=(FLEET.replicas[0], gone)))
    assert "coordinator c-2:7790 does not answer" in problem.what
    assert problem.remedy == "no process listens there"
    assert "no shard has registered" in only(replace(FLEET, shards=(), bindings={})).what


def test_clusters_without_a_session_are_told_once_per_shard() -> None:
    shard = replace(SOUND, counted=MachineCounts({"Configured": 2}, clusters=frozenset({"a", "b"})))
    view = replace(FLEET, shards=(shard,), bindings={"shop": "s-1", "a": "s-1", "b": "s-1"})
    assert "2 clusters of shard s-1 not connected: a, b" in only(view).what
    assert "forget-cluster a" in only(view).remedy


def test_a_cluster_of_which_nothing_is_left_but_its_binding_is_no_problem() -> None:
    view = replace(FLEET, bindings={"shop": "s-1", "forgotten": "s-1"})
    assert diagnose(view) == []
    lack = MissingDemand("s-1", ("forgotten",), 0, {"cpu": "1"}, 1)
    assert "not connected: forgotten" in only(replace(view, shortfalls=(lack,))).what
    cut = replace(SOUND, counted=MachineCounts(trouble="no answer in time"))
    problems = diagnose(replace(view, shards=(cut,)))
    assert any("not connected: forgotten" in one.what for one in problems)


def test_clusters_of_a_shard_that_could_not_be_asked_are_not_called_away() -> None:
    away = replace(SOUND, trouble="no way")
    view = replace(FLEET, shards=(away,), bindings={"a": "s-1"})
    assert "cannot be asked" in only(view).what


def test_a_session_at_another_shard_than_the_bound_one_is_told() -> None:
    problem = only(replace(FLEET, bindings={"shop": "s-2"}))
    assert "shop is bound to shard s-2, but its operator dials s-1" in problem.what
    assert "bind-cluster shop s-1" in problem.remedy


def test_only_demand_that_stays_unmet_is_a_problem() -> None:
    young = MissingDemand("s-1", ("shop",), 10, {"cpu": "1"}, 5)
    assert diagnose(replace(FLEET, shortfalls=(young,))) == []
    old = replace(young, age_cycles=6)
    problem = only(replace(FLEET, shortfalls=(old, replace(old, age_cycles=9))))
    assert (
        problem.what == "shard s-1 cannot provide cpu 1 for shop and 1 more profile, for 9 cycles"
    )
    assert "inspect-needs --shard s-1 --unmet" in problem.remedy
    alone = replace(FLEET, replicas=(), shortfalls=(old,), bindings={})
    assert "inspect-needs --unmet" in only(alone).remedy


def test_instructions_that_failed_are_told() -> None:
    problem = only(
        replace(FLEET, waiting=(FailingInstruction("s-1", "take domain a=b", 1, "why"),))
    )
    assert problem.what == "shard s-1 failed 1 time to take domain a=b: why"


def test_the_worst_comes_first() -> None:
    shard = replace(SOUND, paused=True, providers=())
    weights = [problem.weight for problem in diagnose(replace(FLEET, shards=(shard,)))]
    assert weights == [Weight.ERROR, Weight.WARNING]
