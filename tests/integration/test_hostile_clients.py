"""What a client that means harm can do to the processes of a fleet: nothing that others notice.

All processes run with their defaults on a machine of their own; the client is
tests/support/hostile_client.py.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_process import PROCESSES, start_every_process
from new_machine import ROOT, NewMachine

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

CLIENT = ROOT / "tests" / "support" / "hostile_client.py"
LOG_PER_CALL = 100_000
ENDS_WITHIN_S = 5.0


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewMachine]:
    with NewMachine(tmp_path_factory.mktemp("machine")) as started:
        yield started


@pytest.fixture(scope="module")
def logs(machine: NewMachine) -> dict[str, Path]:
    return start_every_process(machine)


def test_hostile_ids_are_refused_in_few_words_and_leave_no_trace(
    machine: NewMachine, logs: dict[str, Path]
) -> None:
    before = {command: log.stat().st_size for command, log in logs.items()}
    replies = json.loads(machine.run(f"python {CLIENT} ids", seconds=200).splitlines()[-1])
    assert len(replies) == 20
    wrong = [reply for reply in replies if reply["code"] != "INVALID_ARGUMENT"]
    assert not wrong
    assert all(reply["length"] < 1_000 for reply in replies)
    for command, log in logs.items():
        kind = re.split(r"[ -]", command)[1]
        count = sum(reply["call"].startswith(kind) for reply in replies)
        assert log.stat().st_size - before[command] < max(1, count) * LOG_PER_CALL, command
        assert "\nforged log line" not in log.read_text("utf-8", errors="replace")
    for listing in ("list-clusters", "list-shards"):
        shown = machine.run(f"bigfleetctl {listing} --output json")
        assert "passwd" not in shown
        assert "forged" not in shown
    machine.check_alive()


def test_probes_are_answered_within_a_second_beside_a_thousand_idle_connections(
    machine: NewMachine, logs: dict[str, Path]
) -> None:
    ports = sorted(set().union(*PROCESSES.values()))
    words = " ".join(map(str, ports))
    seconds = json.loads(machine.run(f"python {CLIENT} idle {words}", seconds=200).splitlines()[-1])
    assert sorted(map(int, seconds)) == ports
    slow = {port: took for port, took in seconds.items() if took > 1.0}
    assert not slow
    machine.check_alive()


def test_a_signal_ends_every_process_within_five_seconds(
    machine: NewMachine, logs: dict[str, Path]
) -> None:
    took = {command: machine.terminate(f"exec {command}") for command in logs}
    assert {command: seconds for command, seconds in took.items() if seconds > ENDS_WITHIN_S} == {}
