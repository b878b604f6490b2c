"""The lines that every process has in common, and the operator's: each is provoked, and found."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from log_lines import Said, look_for, of_json, promised

from bigfleet.cli.errors import FailureError
from bigfleet.cli.processes.process import process_command
from bigfleet.shard.server.settings import ShardSettings

PATIENCE = 90.0
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {token: secret}}]
"""
LISTENING = ("--listen", "127.0.0.1:0", "--data-dir", "data")
COMMANDS = {
    "shard": ("--shard-id", "s-1", *LISTENING),
    "coordinator": ("--id", "c-1", *LISTENING),
    "operator": (
        "--cluster-id", "c-1", "--shard-addr", "127.0.0.1:2", "--allow-stub-bootstrap",
        "--kubeconfig", "kubeconfig",
    ),
    "pod-controller": ("--kubeconfig", "kubeconfig"),
}  # fmt: skip
CALLED = ("shard", "coordinator")
"""Those that others call."""
PROVOKED = ("listening", "metrics serving", "signal received, shutting down")


def lived(folder: Path, name: str, enough: str) -> list[Said]:
    """What a process writes from its start until it was told to stop after saying enough."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    log = folder / "log"
    flags = (*COMMANDS[name], "--metrics-addr", "127.0.0.1:0", "--log-format", "json")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "bigfleet.cli.main", name, *flags], stderr=file, cwd=folder
        )
    try:
        end = time.monotonic() + PATIENCE
        while enough not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    return of_json(log.read_text())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_says_what_it_is_and_that_it_was_told_to_stop(tmp_path: Path, name: str) -> None:
    is_operator = name == "operator"
    said = lived(tmp_path, name, "operator started" if is_operator else "metrics serving")
    for line in promised("all"):
        if line.words in PROVOKED and (line.words != "listening" or name in CALLED):
            look_for(line, said)
    for line in promised("operator") if is_operator else ():
        look_for(line, said)


def test_a_part_that_fails_ends_the_process_with_a_line_and_an_exit_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def breaks(_settings: ShardSettings, _stop: asyncio.Event) -> None:
        raise RuntimeError("a part broke")

    async def breaks_inside(settings: ShardSettings, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(breaks(settings, stop))

    (line,) = (line for line in promised("all") if line.words not in PROVOKED)
    for serve in (breaks, breaks_inside):
        with pytest.raises(FailureError) as ended:
            process_command(ShardSettings, serve, ())(shard_id="s-1", log_format="json")
        assert ended.value.exit_code == 1
        look_for(line, of_json(capfd.readouterr().err))
