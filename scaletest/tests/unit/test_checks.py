"""Windows of actions, decided from recorded samples: what is missed is named, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from bigfleet_scaletest.local.checks import ActionRecord, windows
from bigfleet_scaletest.record.samples import (
    FleetSample,
    buckets_grown,
    counter,
    grown,
    parse_metrics,
)

FIRED = 1000.0
STATE = {"shards": ["bigfleet-shard-0"], "clusters": ["c"], "domains": ["d"]}
REPORTS = 'bigfleet_shard_coordinator_report_total{outcome="success"}'


def sample(at: float, leader: str = "coordinator-1", term: float = 8, **load: Any) -> FleetSample:
    processes: dict[str, dict[str, float]] = {
        f"coordinator-{n}": {
            "bigfleet_coordinator_is_leader": float(leader == f"coordinator-{n}"),
            "bigfleet_coordinator_has_leader": 1.0,
            "bigfleet_coordinator_raft_term": term,
        }
        for n in range(3)
    }
    processes["bigfleet-shard-0"] = {REPORTS: at, "bigfleet_shard_shortfalls": 0.0}
    return FleetSample(at, processes, {"sessions": {"bigfleet-shard-0": 50}, "bound": 900, **load})


def cycle(at: float, shard: str = "bigfleet-shard-0", **actions: int) -> dict[str, Any]:
    return {
        "shard": shard, "start_unix_nanos": at * 1e9, "wall_ns": 5_000_000, "actions": actions,
    }  # fmt: skip


def leader_kill() -> ActionRecord:
    before = [sample(FIRED - 20 + n, "coordinator-0", 7) for n in range(20)]
    between = [without_leader(sample(FIRED + n, "", 7), "coordinator-0") for n in (1, 2, 3)]
    after = [sample(FIRED + n) for n in range(4, 90)]
    return ActionRecord(
        action="kill-coordinator-leader",
        struck="coordinator-0",
        fired_unix_s=FIRED,
        until_unix_s=FIRED,
        before=before[-1],
        samples=[*before, *between, *after],
        cycles=[cycle(FIRED - 30 + 10 * n) for n in range(12)],
        cycle_interval_s=10.0,
        gone_seconds=0.01,
        facts={"probeSeconds": 4.5, "stateBefore": STATE, "stateAfter": STATE},
    )


def without_leader(one: FleetSample, gone: str) -> FleetSample:
    return replace(one, processes={k: v for k, v in one.processes.items() if k != gone})


def missed(record: ActionRecord) -> set[str]:
    return {each.check for each in windows(record) if not each.passed}


def test_a_good_failover_misses_nothing_and_says_how_long_it_took() -> None:
    found = {each.check: each.measured_seconds for each in windows(leader_kill())}
    assert not missed(leader_kill())
    assert found["newLeader"] == 4.0
    assert found["oldReplicaFollows"] == 4.0
    assert found["probeWrite"] == 4.5


BROKEN: dict[str, dict[str, Any]] = {
    "newLeader": {"samples": [sample(FIRED - 5 + n, "coordinator-0", 7) for n in range(90)]},
    "probeWrite": {"facts": {"probeSeconds": 10.1, "stateBefore": STATE, "stateAfter": STATE}},
    "stateKept": {
        "facts": {"probeSeconds": 1, "stateBefore": STATE, "stateAfter": {**STATE, "domains": []}}
    },
    "processGone": {"gone_seconds": None},
    "cyclesOf:bigfleet-shard-0": {"cycles": [cycle(FIRED - 10), cycle(FIRED + 21)]},
    "sampled": {"samples": leader_kill().samples[::12]},
}


@pytest.mark.parametrize("check", BROKEN)
def test_what_goes_wrong_is_missed(check: str) -> None:
    assert check in missed(replace(leader_kill(), **BROKEN[check]))


def test_a_dropped_session_and_two_leaders_of_one_term_are_missed() -> None:
    record = leader_kill()
    fewer = sample(FIRED + 50, sessions={"bigfleet-shard-0": 49})
    assert missed(replace(record, samples=[*record.samples, fewer])) == {"sessionsHeld"}
    two = sample(FIRED + 90)
    two.processes["coordinator-2"]["bigfleet_coordinator_is_leader"] = 1.0  # type: ignore[index]
    assert missed(replace(record, samples=[*record.samples, two])) == {"oneLeaderPerTerm"}


def test_a_tighter_window_of_the_profile_wins() -> None:
    assert missed(replace(leader_kill(), expect={"newLeader": 3})) == {"newLeader"}


def test_a_counter_is_added_up_over_restarts() -> None:
    name = 'x_total{kind="a"}'
    seen = [FleetSample(n, {"p": {name: v}}) for n, v in enumerate((5.0, 9.0, 2.0, 3.0))]
    assert grown(seen, "p", counter("x_total")) == 4 + 2 + 1
    assert grown(seen[:1], "p", counter("x_total")) is None
    assert grown(seen, "q", counter("x_total")) is None


def test_buckets_are_those_of_the_window() -> None:
    def page(low: int, high: int) -> dict[str, float]:
        text = f'h_bucket{{le="0.1"}} {low}\nh_bucket{{le="+Inf"}} {high}\nother 3\n'
        return parse_metrics(text, ("h_",))

    seen = [FleetSample(0, {"p": page(5, 9)}), FleetSample(1, {"p": page(7, 14)})]
    assert buckets_grown(seen, "p", "h") == {0.1: 2.0, float("inf"): 5.0}
