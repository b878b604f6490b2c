"""Decisions as they happen: lines, filters, lost connections."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
import yaml

from bigfleet_api.v1alpha1 import shardread_pb2 as read
from ctlfleet import CannedShard, ctl, deaf, serving, status
from ctlworld import World, decisions


def test_decisions_are_lines(fleet: World) -> None:
    result = ctl(*fleet.one_at, "watch", "--count", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "07:59:55 Bootstrap m-3 for shop, $0.50/h: an idle machine fits\n"
        "07:59:56 Preempt m-2 from lab: a more important need\n"
        "08:00:00 Bootstrap m-3 for shop, $0.50/h -> success\n"
    )


def test_programs_get_a_document_per_decision(fleet: World) -> None:
    lines = ctl(*fleet.one_at, "watch", "--count", "3", "-o", "json").stdout.splitlines()
    documents = [json.loads(line) for line in lines]
    assert [document["machine_id"] for document in documents] == ["m-3", "m-2", "m-3"]
    assert documents[0] == {
        "shard": fleet.one_at[1],
        "cycle": 412,
        "at": "2027-01-15T07:59:55.000Z",
        "kind": "Bootstrap",
        "machine_id": "m-3",
        "cluster_id": "shop",
        "profile_fingerprint": "fp-shop-1000",
        "reason": "an idle machine fits",
        "cost_per_hour": 0.5,
        "outcome": "",
    }
    fleet.one.decisions = [decisions()]
    text = ctl(*fleet.one_at, "watch", "--count", "3", "-o", "yaml").stdout
    assert list(yaml.safe_load_all(text)) == documents


def test_only_what_is_wanted_is_shown(fleet: World) -> None:
    words = ["watch", "--shard", "s-1", "--cluster", "lab", "--kind", "preempt", "--count", "1"]
    result = ctl(*fleet.at, *words, "--since-cycle", "400")
    assert result.stdout == "07:59:56 Preempt m-2 from lab: a more important need\n"
    assert fleet.one.last("WatchDecisions").since_cycle == 400


def test_of_several_shards_each_line_names_its_own(fleet: World) -> None:
    fleet.two.decisions = [[read.Decision(cycle=9, kind="Delete", machine_id="n-1")]]
    words = ["watch", "--shard", "s-1", "--shard", "s-2", "--count", "4"]
    lines = ctl(*fleet.at, *words).stdout.splitlines()
    assert any("s-1 Bootstrap m-3" in line for line in lines)
    assert "00:00:00 s-2 Delete n-1" in lines


def test_a_lost_stream_is_taken_up_again_without_saying_anything_twice() -> None:
    first, second, third = decisions()
    shard = CannedShard(status("s-1"), decisions=[[first], [first, second, third]])
    with serving(shard) as address:
        result = ctl("--shard-addr", address, "watch", "--count", "3", "-o", "json")
    assert result.exit_code == 0, result.output
    kinds = [json.loads(line)["kind"] for line in result.stdout.splitlines()]
    assert kinds == ["Bootstrap", "Preempt", "Bootstrap"]
    assert "ended the stream; trying again every 2 s" in result.stderr
    assert shard.last("WatchDecisions").since_cycle == 412


def test_one_shard_that_is_away_does_not_keep_the_others(fleet: World) -> None:
    result = ctl(*fleet.at, "watch", "--count", "3")
    assert result.exit_code == 0
    assert "Preempt" in result.stdout
    assert result.stderr.count("cannot reach shard s-3") <= 1


def test_the_only_shard_being_away_ends_the_watch() -> None:
    with deaf() as address:
        result = ctl("--shard-addr", address, "watch")
    assert result.exit_code == 1
    assert "no process listens there" in result.stderr


@pytest.mark.parametrize(
    ("kind", "towards"), [("Reclaim", "from"), ("Drain", "from"), ("Keep", "for")]
)
def test_what_a_cluster_loses_is_taken_from_it(fleet: World, kind: str, towards: str) -> None:
    made = read.Decision(cycle=9, kind=kind, machine_id="n-1", cluster_id="cirrus")
    fleet.one.decisions = [[made]]
    result = ctl(*fleet.one_at, "watch", "--kind", kind.lower(), "--count", "1")
    assert result.stdout.endswith(f"{kind} n-1 {towards} cirrus\n")


def test_a_quiet_fleet_is_waited_for_aloud(fleet: World) -> None:
    quiet, loud = (
        read.Decision(cycle=9, kind=kind, machine_id="n-1") for kind in ("Delete", "Keep")
    )
    fleet.one.decisions = [[quiet], [loud]]
    words = (*fleet.one_at, "watch", "--kind", "keep", "--count", "1")
    result = ctl(*words)
    assert result.stderr.count("waiting for decisions; Ctrl-C ends") == 1
    fleet.one.decisions = [[quiet], [loud]]
    assert "waiting" not in ctl(*words, "--quiet").stderr


def test_a_refusal_ends_the_watch(fleet: World) -> None:
    refusal = (grpc.StatusCode.PERMISSION_DENIED, "WatchDecisions is for readonly")
    fleet.one.refuses["WatchDecisions"] = refusal
    result = ctl(*fleet.at, "watch", "--shard", "s-1")
    assert result.exit_code == 1
    assert "WatchDecisions is for readonly" in result.stderr


@contextmanager
def interruptible() -> Iterator[None]:
    """Programs started inside hear SIGINT, also when this run ignores it, as in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_the_ordinary_end_of_a_watch(fleet: World, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "bigfleet.cli.ctl.main", *fleet.one_at, "watch"]
    pipe = subprocess.PIPE
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with (
        interruptible(),
        subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=kept) as watching,
    ):
        assert watching.stdout is not None
        assert "Bootstrap m-3" in watching.stdout.readline()
        watching.send_signal(number)
        _, complaint = watching.communicate(timeout=30)
    assert watching.returncode == 130
    assert complaint == ""
