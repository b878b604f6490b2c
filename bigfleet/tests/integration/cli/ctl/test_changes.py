"""Every command that changes something: what it sends, what it says, and what it asks before."""

import json
from typing import Any

import pytest

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from ctlfleet import CannedCoordinator, ctl, entry, serving
from ctlworld import ZONE, World

CHANGES: list[tuple[list[str], str, dict[str, Any], str]] = [
    (
        ["assign-domain", f"{ZONE}=eu-1c", "s-2"],
        "AssignDomain",
        {"topology_key": ZONE, "topology_value": "eu-1c", "shard_id": "s-2"},
        "belongs to shard s-2",
    ),
    (
        ["unassign-domain", f"{ZONE}=eu-1c"],
        "UnassignDomain",
        {"topology_key": ZONE, "topology_value": "eu-1c"},
        "belongs to no shard",
    ),
    (
        ["set-quota", "aws", "s-1=100", "s-2=0", "--region", "eu-1"],
        "SetQuota",
        {"provider": "aws", "region": "eu-1", "per_shard": {"s-1": 100, "s-2": 0}},
        "Quota of aws in eu-1: s-1 100, s-2 0.",
    ),
    (
        ["set-quota", "aws", "--remove"],
        "SetQuota",
        {"provider": "aws", "region": "", "per_shard": {}},
        "aws has no quota any more.",
    ),
    (
        ["remove-provider", "aws"],
        "RemoveProvider",
        {"name": "aws"},
        "Provider aws is removed.",
    ),
    (
        ["bind-cluster", "mail", "s-2"],
        "BindCluster",
        {"cluster_id": "mail", "shard_id": "s-2"},
        "Cluster mail belongs to shard s-2.",
    ),
    (
        ["remove-shard", "s-3"],
        "RemoveShard",
        {"shard_id": "s-3"},
        "Shard s-3 is removed",
    ),
]


@pytest.mark.parametrize(
    ("words", "method", "facts", "sentence"), CHANGES, ids=lambda v: str(v)[:20]
)
def test_a_change_reaches_the_coordinator_and_is_told(
    fleet: World, words: list[str], method: str, facts: dict[str, Any], sentence: str
) -> None:
    told = ctl(*fleet.at, *words)
    assert told.exit_code == 0, told.output
    assert sentence in told.stdout
    request = fleet.coordinator.last(method)
    for name, value in facts.items():
        sent = getattr(request, name)
        assert (dict(sent) if isinstance(value, dict) else sent) == value
    document = json.loads(ctl(*fleet.at, *words, "-o", "json").stdout)
    assert document == {"done": words[0], **facts}


def test_a_provider_is_registered_for_all_shards_or_for_some(fleet: World) -> None:
    text = ctl(*fleet.at, "register-provider", "gcp", "gcp:9001").stdout
    assert text == "Provider gcp at gcp:9001 is registered for all shards.\n"
    words = ["register-provider", "gcp", "gcp:9001", "--region", "us", "--shard", "s-2"]
    document = json.loads(ctl(*fleet.at, *words, "--shard", "s-1", "-o", "json").stdout)
    assert document["shards"] == ["s-1", "s-2"]
    entry = fleet.coordinator.last("RegisterProvider").provider
    assert (entry.name, entry.address, entry.region) == ("gcp", "gcp:9001", "us")
    assert list(entry.shards) == ["s-1", "s-2"]


def test_machines_are_drained_and_kept_out_at_their_shard(fleet: World) -> None:
    text = ctl(*fleet.at, "drain-machine", "m-1", "--shard", "s-1", "--exclude").stdout
    assert text == "Machine m-1 of shard s-1 is being drained and is kept out afterwards.\n"
    request = fleet.one.last("DrainMachine")
    assert (request.machine_id, request.exclude) == ("m-1", True)
    document = json.loads(
        ctl(*fleet.at, "exclude-machine", "m-2", "--shard", "s-1", "-o", "json").stdout
    )
    expected = {"done": "exclude-machine", "machine_id": "m-2", "shard": "s-1", "excluded": True}
    assert document == expected
    text = ctl(*fleet.one_at, "exclude-machine", "m-2", "--include").stdout
    assert "takes part in decisions again" in text
    assert fleet.one.last("ExcludeMachine").exclude is False


def test_a_machine_of_a_fleet_of_several_shards_needs_its_shard(fleet: World) -> None:
    result = ctl(*fleet.at, "drain-machine", "m-1")
    assert result.exit_code == 2
    assert "there are 3 shards: say which with --shard (s-1, s-2, s-3)" in result.stderr
    assert "DrainMachine" not in fleet.one.methods()


def test_shards_are_paused_and_resumed(fleet: World) -> None:
    words = ["pause", "--shard", "s-1", "--shard", "s-2", "--reason", "network work"]
    text = ctl(*fleet.at, *words).stdout
    assert "Shard s-1 is paused" in text
    assert "Shard s-2 is paused" in text
    assert fleet.two.last("Pause").reason == "network work"
    document = json.loads(ctl(*fleet.at, "resume", "--shard", "s-1", "-o", "json").stdout)
    assert document == {"done": "resume", "shards": ["s-1"]}
    assert ctl(*fleet.one_at, "pause").exit_code == 0


def test_a_whole_fleet_is_paused_only_when_all_is_said(fleet: World) -> None:
    refused = ctl(*fleet.at, "pause")
    assert refused.exit_code == 2
    assert "say which with --shard" in refused.stderr
    assert "Pause" not in fleet.one.methods()
    done = ctl(*fleet.at, "pause", "--all")
    assert done.exit_code == 1
    assert "Shard s-2 is paused" in done.stdout
    assert "cannot reach shard s-3" in done.stderr
    both = ctl(*fleet.at, "pause", "--all", "--shard", "s-1")
    assert both.exit_code == 2


def test_a_cluster_is_forgotten_at_the_shard_it_belongs_to(fleet: World) -> None:
    result = ctl(*fleet.at, "forget-cluster", "old", "--yes")
    assert result.exit_code == 0, result.output
    assert "Shard s-1 has forgotten cluster old" in result.stdout
    request = fleet.one.last("ForgetCluster")
    assert (request.cluster_id, request.confirm) == ("old", True)
    assert "ForgetCluster" not in fleet.two.methods()
    unknown = ctl(*fleet.at, "forget-cluster", "unknown", "--yes")
    assert unknown.exit_code == 2
    assert "knows no cluster 'unknown'" in unknown.stderr


def test_forgetting_asks_first(fleet: World) -> None:
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    refused = ctl(*fleet.at, "forget-cluster", "old", confirm=no)
    assert refused.exit_code == 1
    assert refused.stderr == "bigfleetctl: nothing was changed\n"
    assert asked == ["Forget cluster old? All its machines may then be reclaimed."]
    assert "ForgetCluster" not in fleet.one.methods()
    done = ctl(*fleet.one_at, "forget-cluster", "old", confirm=lambda _: True)
    assert done.exit_code == 0
    unconfirmed = ctl(*fleet.one_at, "forget-cluster", "old")
    assert unconfirmed.exit_code == 2
    assert "pass --yes" in unconfirmed.stderr


def test_quiet_leaves_sentences_out(fleet: World) -> None:
    assert ctl(*fleet.at, "--quiet", "remove-shard", "s-3").stdout == ""


def test_a_quota_of_what_no_machine_has_is_set_and_warned_of() -> None:
    coordinator = CannedCoordinator()
    coordinator.providers = [pb.ProviderEntry(name="aws", address="aws:9001", region="eu-1")]
    totals = [pb.QuotaAllocation(provider="fake", per_shard={"s-1": 200})]
    summary = pb.ShardSummary(quota_totals=totals)
    coordinator.shards = [entry("s-1", "s-1:7780")]
    wrong = ("set-quota", "fake", "s-1=5", "--region", "eu-1")
    with serving(coordinator) as at:
        assert ctl("--coordinator", at, *wrong).stderr == "", "its shard has not spoken yet"
        coordinator.reports = [pb.ShardReportSnapshot(shard_id="s-1", summary=summary)]
        for known in (["aws", "--region", "eu-1"], ["fake"]):
            assert ctl("--coordinator", at, "set-quota", known[0], "s-1=5", *known[1:]).stderr == ""
        result = ctl("--coordinator", at, *wrong)
        assert result.exit_code == 0
        assert "no shard has machines of fake in eu-1 yet" in result.stderr
        assert "known: aws in eu-1, fake" in result.stderr
        gone = ctl("--coordinator", at, "set-quota", "fake", "--region", "eu-1", "--remove")
        assert gone.stderr == ""
