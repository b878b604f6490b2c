"""`status` and `inspect-needs`, which people open first: byte for byte, and for programs.

A golden file is made again from what the test printed; ports are written as PORT.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from bigfleet_api.v1alpha1 import shardread_pb2 as read
from ctlfleet import CannedCoordinator, CannedShard, ctl, deaf, entry, serving, status
from ctlworld import World

HERE = Path(__file__).parent
_PORT = re.compile(r"127\.0\.0\.1:\d{5}")


def told(text: str) -> str:
    """What was printed, without what changes from run to run and what no process sees."""
    lines = _PORT.sub("127.0.0.1:PORT", text).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


@pytest.mark.parametrize(
    ("golden", "words", "columns"),
    [
        ("status.txt", ["status"], 100),
        ("status-40-columns.txt", ["status"], 40),
        ("inspect-needs.txt", ["inspect-needs", "--shard", "s-1", "--shard", "s-2"], 100),
        ("inspect-needs-unmet.txt", ["inspect-needs", "--shard", "s-1", "--unmet"], 60),
    ],
)
def test_a_first_look_is_printed_as_it_was(
    fleet: World, golden: str, words: list[str], columns: int
) -> None:
    result = ctl(*fleet.at, *words, columns=columns)
    assert result.exit_code == 0, result.output
    assert told(result.stdout) == (HERE / golden).read_text(encoding="utf-8")


def test_the_status_of_one_shard_needs_no_coordinator(fleet: World) -> None:
    result = ctl(*fleet.one_at, "status", columns=100)
    assert told(result.stdout) == (HERE / "status-of-one-shard.txt").read_text(encoding="utf-8")


def test_the_status_for_programs_holds_every_number_of_the_screen(fleet: World) -> None:
    document = json.loads(ctl(*fleet.at, "status", "-o", "json").stdout)
    assert document["leader"] == fleet.at[1]
    assert document["clusters"] == {"bound": 4, "connected": 3}
    assert document["machines"] == 7
    assert document["spend_per_hour"] == 9.0
    assert document["spend_is_complete"] is False
    assert document["moves_under_way"] == 1
    assert [shard["answers"] for shard in document["shards"]] == [True, True, False]
    first = document["shards"][0]
    assert first["machines"] == {"Configured": 2, "Failed": 2, "Idle": 1}
    assert first["spend_per_hour"] == 5.0
    assert first["sessions"] == ["lab", "shop"]
    assert document["shortfalls"][0] == {
        "shard": "s-1",
        "cluster_ids": ["shop"],
        "priority": 1000,
        "missing": {"cpu": "8"},
        "age_cycles": 14,
        "topology_constrained": False,
    }
    assert {problem["severity"] for problem in document["problems"]} == {"error", "warning"}
    assert yaml.safe_load(ctl(*fleet.at, "status", "-o", "yaml").stdout) == document


def test_a_fleet_in_order_has_nothing_wrong() -> None:
    shard, coordinator = CannedShard(status("s-1")), CannedCoordinator()
    with serving(shard) as shard_at, serving(coordinator) as address:
        coordinator.shards = [entry("s-1", shard_at)]
        text = ctl("--coordinator", address, "status").stdout
    assert "none reported" in text
    assert "$0.00 per hour" in text
    assert text.endswith("Nothing is wrong.\n")


def test_needs_for_programs_say_why_and_what_would_help(fleet: World) -> None:
    words = ["inspect-needs", "--shard", "s-1", "--cluster", "lab", "-o", "json"]
    document = json.loads(ctl(*fleet.at, *words).stdout)
    assert document["shards"] == [
        {
            "shard": "s-1",
            "cycle": 412,
            "computed_at": "2027-01-15T07:59:56.000Z",
            "total_needs": 2,
        }
    ]
    gang, starved = document["needs"]
    assert gang["reason"] == "TOPOLOGY_UNSATISFIABLE"
    assert gang["missing"] == {"cpu": "64"}
    assert gang["requirements"] == ["rack Same"]
    assert gang["matching_supply"] == {
        "idle": 2,
        "configured": 9,
        "speculative": 5,
        "capped": False,
    }
    assert gang["same_candidates"][0] == {"domain": "r-7", "coverage_per_mille": 666, "ok": False}
    assert gang["preemption"] is None
    assert "66.6 %" in gang["tried"][0]
    assert not gang["explanation"]["complete"]
    assert starved["preemption"] == {"victims_found": 2, "capacity_freed": {"cpu": "8"}}
    assert starved["tried"][-1].startswith("old enough for other shards")


def test_met_needs_are_left_out_before_the_limit_cuts(fleet: World) -> None:
    words = ["inspect-needs", "--shard", "s-1", "--unmet", "--limit", "2", "-o", "json"]
    needs = json.loads(ctl(*fleet.at, *words).stdout)["needs"]
    assert [(need["cluster_id"], need["priority"]) for need in needs] == [
        ("shop", 1000),
        ("lab", 500),
    ]
    words = ["inspect-needs", "--shard", "s-1", "--limit", "2", "-o", "json"]
    needs = json.loads(ctl(*fleet.at, *words).stdout)["needs"]
    assert [need["satisfied"] for need in needs] == [False, True]
    assert "reason" not in needs[1]
    assert fleet.one.last("InspectNeeds").limit == 2


def test_before_the_first_cycle_nothing_is_said_of_demand() -> None:
    with serving(CannedShard(status("s-1"))) as address:
        text = ctl("--shard-addr", address, "inspect-needs").stdout
    assert "nothing decided yet: its first cycle is not over" in text


def test_machines_that_cannot_be_counted_are_said_to_be_so(fleet: World) -> None:
    import grpc

    fleet.one.refuses["ListMachines"] = (grpc.StatusCode.DEADLINE_EXCEEDED, "")
    text = ctl(*fleet.at, "status").stdout
    assert "machines of shard s-1 are not all counted, nor is their spend" in text
    assert "wait longer with --timeout" in text
    assert "at least $4.00 per hour" in text


def test_a_fleet_that_comes_up_can_be_waited_for() -> None:
    coordinator, late = CannedCoordinator(), CannedShard(status("s-1"))
    late.status.cycle = 0
    look = late.GetStatus

    def deciding(request: read.GetStatusRequest, context: object) -> read.ShardStatus:
        answer = read.ShardStatus()
        answer.CopyFrom(look(request, context))
        late.status.cycle += 1
        return answer

    late.GetStatus = deciding  # type: ignore[method-assign]
    with serving(coordinator) as at, serving(late) as address:
        coordinator.shards = [entry("s-1", address)]
        result = ctl("--coordinator", at, "status", "--wait", "30s")
    assert result.exit_code == 0, result.output
    assert late.methods().count("GetStatus") == 2


def test_waiting_for_a_fleet_ends() -> None:
    coordinator = CannedCoordinator()
    with serving(coordinator) as at:
        result = ctl("--coordinator", at, "status", "--wait", "3s")
    assert result.exit_code == 1
    assert coordinator.methods().count("ListShards") > 3
    assert "not every shard decides after 3s" in result.stderr
    with deaf() as unknown:
        result = ctl("--coordinator", unknown, "status", "--wait", "2s")
    assert result.exit_code == 1
    assert "no process listens there" in result.stderr
    assert ctl("status", "--wait", "long").exit_code == 2
