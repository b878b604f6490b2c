"""Before anything starts: what is offered, what demand is, and what is refused."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from bigfleet_scaletest.load.demand import ClusterDemand, probe_machines, schedule
from bigfleet_scaletest.main import main
from bigfleet_scaletest.provider.offerings import offerings
from bigfleet_scaletest.results.report import plot
from bigfleet_scaletest.run_options import RunOptions, plan_run


def test_the_seed_has_what_the_fleet_needs_and_the_tiers_their_shares() -> None:
    run = plan_run(RunOptions("failover-shard-kill"))
    tiers: Counter[str] = Counter()
    for shard in range(2):
        entries = offerings(run, shard)
        for entry in entries:
            tiers[entry["pool"].split("-")[0]] += entry["count"]
            assert entry["count"] <= 40
        assert len({entry["pool"] for entry in entries}) == len(entries)
    assert tiers["seed"] == run.fleet.effective
    assert tiers["idle"] == pytest.approx(0.2 * run.fleet.effective, rel=0.01)
    assert tiers["free"] == pytest.approx(3 * run.fleet.effective, rel=0.01)


def test_scarce_classes_get_the_share_that_the_profile_gives_them() -> None:
    run = plan_run(RunOptions("scarcity-5k"))
    total = sum(entry["count"] for entry in offerings(run, 0))
    assert 0.5 * run.fleet.effective < total < 0.75 * run.fleet.effective


def test_demand_halves_and_comes_back() -> None:
    run = plan_run(RunOptions("oscillation-5k"))
    objects = [each for each in run.fleet.objects if each.cluster == 0]
    demand = ClusterDemand(objects, run.profile, Random(1))
    before = demand.target
    demand.set_multiplier(0.5)
    assert demand.target == pytest.approx(before / 2, rel=0.05)
    demand.set_multiplier(1.0)
    assert demand.target == before == demand.workload.pods()


def test_the_schedule_has_every_change_in_order() -> None:
    run = plan_run(RunOptions("5k", ci=True))
    events = schedule(run.profile, run.fleet.effective)
    assert [(e.kind, e.at_seconds) for e in events] == [
        ("burst", 150.0),
        ("probe", 165.0),
        ("burst-end", 300.0),
    ]


def test_every_shard_has_enough_deliveries_for_a_p99() -> None:
    for name, machines in (("dev-50", 30), ("failover-shard-kill", 60)):
        profile = plan_run(RunOptions(name)).profile
        assert probe_machines(profile, effective=2_000) == machines


REFUSED = [
    (("--profile", "dev-5O"), "did you mean dev-50"),
    (("--profile", "5m"), "not enough memory"),
    (("--profile", "failover-leader-kill"), "make kube-tools"),
    (("--profile", "failover-soak"), "stop-control-plane is not done on this substrate yet"),
    (("--profile", "spot-churn-50k"), "provider.spot is not modelled"),
    (("--profile", "dev-50", "--set", "warp=9"), "is not a setting"),
    (("--profile", "dev-50", "--duration", "10s"), "end before the settle time"),
    (("--profile", "dev-50", "--scale-factor", "2"), "at most 1"),
]


@pytest.mark.parametrize(("flags", "words"), REFUSED)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    flags: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["run", *flags, "--output", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("substrate", ["kind", "byo-mid", "byo-large", "local-process"])
def test_a_dry_run_checks_every_substrate(
    substrate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--profile", "dev-50", "--substrate", substrate, "--dry-run"]) == 0
    assert "can be run" in capsys.readouterr().out


def test_only_local_processes_are_run_today(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--profile", "dev-50", "--substrate", "kind"]) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_a_plot_without_points_says_so() -> None:
    assert "nothing was measured" in plot("Cycle, ms", {"s": []})
    assert plot("Cycle, ms", {"s": [(0.0, 1.0), (1.0, 2.0)]}).count("<polyline") == 1
