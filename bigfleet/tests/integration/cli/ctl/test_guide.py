"""Every command of the guide runs on a fleet, and the guide shows every command."""

import shlex
from pathlib import Path

import pytest

from bigfleet.cli.ctl.main import app
from bigfleet.coordinator.store.snapshots.documents import Document, encode
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from ctlfleet import ctl
from ctlworld import World

GUIDE = Path(__file__).parents[5] / "docs" / "guides" / "bigfleetctl.md"
COMMANDS = [
    shlex.split(line)[1:]
    for line in GUIDE.read_text(encoding="utf-8").splitlines()
    if line.startswith("    bigfleetctl ")
]


def test_the_guide_shows_every_command() -> None:
    names = {command.name for command in app.registered_commands} | {"snapshot"}
    assert {words[0] for words in COMMANDS} == names


def test_the_guide_runs_from_top_to_bottom(
    fleet: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    snapshot = encode(Document((), term=1, revision=1, taken_at=1))
    fleet.coordinator.snapshot = [
        pb.SnapshotSaveChunk(meta_json=snapshot.meta_json),
        pb.SnapshotSaveChunk(data=snapshot.data),
    ]
    # The third shard is away, and not what the guide is about.
    del fleet.coordinator.shards[2]
    for words in COMMANDS:
        result = ctl(*words, env={"BIGFLEETCTL_COORDINATOR": fleet.at[1]})
        assert result.exit_code == 0, (words, result.output)
        assert result.stdout, words
