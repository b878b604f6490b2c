"""Profiles and substrates: what is shipped can be read, and mistakes are named with their line."""

from pathlib import Path

import pytest

from bigfleet_lab.profiles.catalogue import (
    PROFILES,
    SUBSTRATES,
    load_profile,
    load_substrate,
    names,
)
from bigfleet_lab.profiles.ci_form import ci_form, scaled
from bigfleet_lab.profiles.errors import ProfileError
from bigfleet_lab.profiles.fleet_plan import cluster_count, natural_density, plan_fleet
from bigfleet_lab.profiles.gate_rules import rules_for
from bigfleet_lab.profiles.read_profile import read_profile

SPECIFIED = {
    "dev-50", "dev-500", "5k", "25k", "50k", "50k-2shard", "500k", "1m", "5m", "scarcity-5k",
    "preemption-5k", "oscillation-5k", "reclaim-cycle", "reclaim-cycle-50k", "spot-churn-50k",
    "cost-routing-5k", "thundering-herd", "failover-leader-kill", "failover-shard-kill",
    "failover-partition", "failover-soak",
}  # fmt: skip
GOOD = """\
apiVersion: bigfleet.io/scaletest/v1
kind: Profile
metadata:
  name: mine
scale:
  machines: 50
loadProfile:
  rampSeconds: 60
  soakSeconds: 600
topology:
  shardReplicas: 2
"""


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return read_profile(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ProfileError) as caught:
        read(tmp_path, text)
    return str(caught.value)


def test_every_profile_of_the_specification_is_shipped_and_can_be_read() -> None:
    assert set(names(PROFILES)) == SPECIFIED
    for name in SPECIFIED:
        profile = load_profile(name)
        assert profile.name == name
        assert rules_for(profile)
    assert set(names(SUBSTRATES)) >= {"local-process", "kind"}
    for name in names(SUBSTRATES):
        assert load_substrate(name).name == name


def test_densities_are_those_of_the_catalogue() -> None:
    assert natural_density("realistic") == pytest.approx(24.2, abs=0.05)
    assert natural_density("realistic-dev") == pytest.approx(9.7, abs=0.05)
    assert natural_density("cost-routing") == pytest.approx(7.0)


@pytest.mark.parametrize("name", ["5k", "thundering-herd", "failover-soak"])
def test_effective_machines_are_within_one_percent_of_nominal(name: str) -> None:
    profile = load_profile(name)
    plan = plan_fleet(profile, cluster_count(profile, load_substrate("local-process")), seed=3)
    assert plan.effective == pytest.approx(profile.machines, rel=0.013)
    assert plan.pods == pytest.approx(profile.machines * 24, rel=0.001)
    assert {each.cluster for each in plan.objects} == set(range(plan.clusters))


def test_a_plan_is_the_same_for_the_same_seed() -> None:
    profile = load_profile("dev-50")
    assert plan_fleet(profile, 2, 7) == plan_fleet(profile, 2, 7)
    assert plan_fleet(profile, 2, 7) != plan_fleet(profile, 2, 8)


def test_the_ci_form_is_a_quarter_and_keeps_what_actions_need() -> None:
    short = ci_form(load_profile("failover-leader-kill"))
    assert short.name == "failover-leader-kill@ci"
    assert (short.load.settle_seconds, short.actions[0].at_seconds) == (150, 150)
    assert short.load.soak_seconds == 450
    assert ci_form(load_profile("dev-50")).load.soak_seconds == 15 + 220
    soak = ci_form(load_profile("failover-soak"))
    last = soak.actions[-1]
    assert last.duration_seconds == 120
    assert soak.load.soak_seconds >= last.at_seconds + last.duration_seconds + 180


def test_a_scaled_run_has_its_own_name_and_the_same_shards() -> None:
    small = scaled(load_profile("5m"), 0.02)
    assert (small.name, small.machines, small.shards) == ("5m@0.02", 100_000, 10)
    assert scaled(small, 1.0) is small


ACTIONS = "  shardReplicas: 2\nrunnerActions:\n"
MISTAKES = [
    ("  machines: 50", "  machines: 0", "mine.yaml:6", "number of 1 or more"),
    ("  machines: 50", "  machines: 999999999", "mine.yaml:6", "at most 100,000,000"),
    ("  machines: 50", "  machines: many", "mine.yaml:6", "write a number"),
    ("  machines: 50", "  machnes: 50", "mine.yaml:6", "scale.machines is missing"),
    (
        "  rampSeconds: 60",
        "  rampSeconds: 60\n  sokeSeconds: 9",
        "mine.yaml:9",
        "did you mean soakSeconds",
    ),
    (
        "  soakSeconds: 600",
        "  soakSeconds: 600\n  settleSeconds: 600",
        "mine.yaml:10",
        "settle for less",
    ),
    ("kind: Profile", "kind: Pod", "mine.yaml:2", "a Profile is expected"),
    ("  name: mine", "  name: yours", "mine.yaml:4", "the file's name says 'mine'"),
    (
        "  shardReplicas: 2",
        "  shardReplicas: 2\n  coordinatorReplicas: 2",
        "mine.yaml:12",
        "odd number",
    ),
    (
        "  shardReplicas: 2",
        ACTIONS + "- atSeconds: 9\n  action: kill-moon",
        "mine.yaml:14",
        "unknown action 'kill-moon'",
    ),
    (
        "  shardReplicas: 2",
        ACTIONS + "- atSeconds: 900\n  action: kill-coordinator-leader",
        "mine.yaml:13",
        "the soak ends at 600 s",
    ),
    (
        "  shardReplicas: 2",
        ACTIONS + "- atSeconds: 9\n  action: kill-shard-seven",
        "mine.yaml",
        "choose one of bigfleet-shard-0, bigfleet-shard-1",
    ),
    (
        "  shardReplicas: 2",
        ACTIONS.replace("shardReplicas: 2", "coordinatorReplicas: 1")
        + "- atSeconds: 9\n  action: kill-coordinator-leader",
        "mine.yaml",
        "needs 3 coordinator replicas",
    ),
    (
        "  shardReplicas: 2",
        "  shardReplicas: 2\nslo:\n  shardCycleDurationP99Seconds: 60",
        "mine.yaml:13",
        "may tighten 5, not loosen it",
    ),
    (
        "  shardReplicas: 2",
        "  shardReplicas: 2\nslo:\n  skip:\n  - gate: speed\n    reason: none",
        "mine.yaml:14",
        "choose one of",
    ),
    ("topology:", "overrides:\n  warpFactor: 9\ntopology:", "mine.yaml:11", "is not a setting"),
    (
        "topology:",
        "seed:\n  speculativeMultiplier: 2\n  speculativeCount: 9\ntopology:",
        "mine.yaml:12",
        "exclude each other",
    ),
    ("  machines: 50", "  machines: 50\n  machines: 51", "mine.yaml:7", "is there twice"),
    ("  machines: 50", "  machines: [50", "mine.yaml", "not YAML"),
]


@pytest.mark.parametrize(("there", "instead", "line", "remedy"), MISTAKES)
def test_a_mistake_is_refused_with_its_line_and_the_remedy(
    tmp_path: Path, there: str, instead: str, line: str, remedy: str
) -> None:
    message = refusal(tmp_path, GOOD.replace(there, instead))
    assert message.startswith(line)
    assert remedy in message


def test_the_same_file_without_a_mistake_is_read(tmp_path: Path) -> None:
    read(tmp_path, GOOD)


def test_a_name_that_is_not_shipped_names_the_nearest() -> None:
    with pytest.raises(ProfileError, match="did you mean dev-50"):
        load_profile("dev-5O")
