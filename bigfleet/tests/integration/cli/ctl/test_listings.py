"""Every listing: as a table, as JSON, and as YAML that says the same."""

import json
from typing import Any

import pytest
import yaml

from ctlfleet import ctl
from ctlworld import ZONE, World

LISTINGS: list[tuple[list[str], str, list[str], dict[str, Any]]] = [
    (
        ["list-shards"],
        "shards",
        ["shard", "s-1", "3 s ago", "4 min ago", "1 d ago"],
        {"shard_id": "s-1", "last_heartbeat": "2027-01-15T07:59:57.000Z"},
    ),
    (
        ["list-clusters"],
        "clusters",
        ["cluster", "lab", "2 h ago"],
        {"cluster_id": "lab", "shard_id": "s-1", "bound_at": "2027-01-15T06:00:00.000Z"},
    ),
    (
        ["list-domain-assignments"],
        "assignments",
        [ZONE, "eu-1b"],
        {"shard_id": "s-1", "topology_key": ZONE, "topology_value": "eu-1a"},
    ),
    (
        ["list-quotas"],
        "quotas",
        ["1,800", "s-1 1,500, s-2 300"],
        {
            "provider": "aws",
            "region": "eu-1",
            "total": 1800,
            "per_shard": {"s-1": 1500, "s-2": 300},
        },
    ),
    (
        ["list-providers"],
        "providers",
        ["aws:9001", "all", "metal"],
        {"name": "aws", "address": "aws:9001", "region": "eu-1", "shards": []},
    ),
    (
        ["list-shard-reports"],
        "reports",
        ["cpu 8 for shop, 14 cycles old; cpu 64 for lab, 3 cycles old"],
        {
            "cycle": 77,
            "total_machines": 6,
            "free_machines": 2,
            "per_instance_type": {"g.huge": 1, "m.large": 5},
            "per_zone": {"eu-1a": 6},
        },
    ),
    (
        ["list-instructions"],
        "instructions",
        ["hand over 1 machine (n-1) from s-2 to s-1", "the machine is not Idle", "1 min ago"],
        {
            "instruction_id": "i-5",
            "coordinator_term": 9,
            "kind": "transfer_ownership",
            "tries": 2,
            "last_outcome": "FAILED",
        },
    ),
    (
        ["moves"],
        "moves",
        ["mv-1", "idle", "n-1, n-2 and 1 more", "donor released", "20 s ago", "cpu 8 for shop"],
        {
            "tier": "idle",
            "donor": "s-2",
            "recipient": "s-1",
            "machine_ids": ["n-1", "n-2", "n-3"],
            "phase": "donor_released",
        },
    ),
    (
        ["list-machines", "--shard", "s-1", "--shard", "s-2"],
        "machines",
        ["m-1", "Configured", "OnDemand", "$1.25", "shop", "n-2", "bootstrap: node never joined"],
        {
            "id": "m-1",
            "shard": "s-1",
            "state": "Configured",
            "capacity_type": "OnDemand",
            "price_per_hour": 1.25,
            "cluster": "shop",
            "provider": "aws",
            "host": "i-1",
            "interruption_at": None,
            "resources": {"cpu": "4", "memory": "16Gi"},
            "labels": {ZONE: "eu-1a"},
        },
    ),
]


@pytest.mark.parametrize(("words", "key", "shown", "first"), LISTINGS, ids=lambda v: str(v)[:24])
def test_a_listing_says_the_same_in_three_forms(
    fleet: World, words: list[str], key: str, shown: list[str], first: dict[str, Any]
) -> None:
    table = ctl(*fleet.at, *words, columns=200)
    assert table.exit_code == 0, table.output
    for text in shown:
        assert text in table.stdout
    as_json = ctl(*fleet.at, *words, "--output", "json")
    assert as_json.exit_code == 0
    document = json.loads(as_json.stdout)
    assert list(document) == [key]
    assert {name: document[key][0][name] for name in first} == first
    as_yaml = ctl(*fleet.at, *words, "-o", "yaml")
    assert yaml.safe_load(as_yaml.stdout) == document


def test_an_empty_listing_says_so_and_is_an_empty_list_for_programs(fleet: World) -> None:
    coordinator = fleet.coordinator
    coordinator.moves.clear()
    coordinator.quotas.clear()
    assert ctl(*fleet.at, "moves").stdout == "No machine is on its way between shards.\n"
    assert "every shard may draw" in ctl(*fleet.at, "list-quotas").stdout
    assert json.loads(ctl(*fleet.at, "list-quotas", "-o", "json").stdout) == {"quotas": []}


def test_listings_of_one_shard_leave_the_others_out(fleet: World) -> None:
    for command in ("list-clusters", "list-domain-assignments", "list-instructions"):
        text = ctl(*fleet.at, command, "--shard", "s-2").stdout
        assert "s-2" in text or command == "list-clusters"
        assert "\n s-1" not in text, command
        assert "s-3" not in text, command
    reports = ["list-shard-reports", "--shard", "s-3"]
    assert json.loads(ctl(*fleet.at, *reports, "-o", "json").stdout) == {"reports": []}
    assert "No report of shard s-3 has arrived" in ctl(*fleet.at, *reports).stdout
    assert (
        "No cluster is bound to shard s-3" in ctl(*fleet.at, "list-clusters", *reports[1:]).stdout
    )


@pytest.mark.parametrize(
    "command",
    ["list-clusters", "list-domain-assignments", "list-instructions", "list-shard-reports"],
)
def test_a_listing_of_a_shard_that_is_not_there_says_so(fleet: World, command: str) -> None:
    result = ctl(*fleet.at, command, "--shard", "s-9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no shard 's-9': there are s-1, s-2, s-3" in result.stderr


def test_moves_that_are_over_are_shown_when_asked_for(fleet: World) -> None:
    assert "mv-0" not in ctl(*fleet.at, "moves").stdout
    text = ctl(*fleet.at, "moves", "--all").stdout
    assert "mv-0" in text
    assert "abandoned" in text


def test_machines_are_filtered_by_the_shard(fleet: World) -> None:
    words = ["--shard", "s-1", "--state", "idle", "--state", "Failed", "--instance-type", "m.large"]
    document = json.loads(ctl(*fleet.at, "list-machines", *words, "-o", "json").stdout)
    assert [machine["id"] for machine in document["machines"]] == ["m-3", "m-5", "m-6"]
    request = fleet.one.last("ListMachines")
    assert list(request.states) == [3, 8]
    assert request.limit == 0
    mine = ctl(*fleet.one_at, "list-machines", "--cluster", "old", "-o", "json").stdout
    assert [machine["id"] for machine in json.loads(mine)["machines"]] == ["m-2"]


def test_a_limit_cuts_and_says_so(fleet: World) -> None:
    text = ctl(*fleet.one_at, "list-machines", "--limit", "2").stdout
    assert "m-2" in text
    assert "m-3" not in text
    assert "... and more than 2 of a shard; --limit 0 shows all" in text


def test_shards_that_are_away_leave_the_rest_shown_and_exit_code_1(fleet: World) -> None:
    result = ctl(*fleet.at, "list-machines")
    assert result.exit_code == 1
    assert "m-1" in result.stdout
    assert "n-1" in result.stdout
    assert result.stderr.count("\n") == 1
    assert "cannot reach shard s-3 at 127.0.0.1" in result.stderr
