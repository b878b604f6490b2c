"""Where no process can listen: one line with the address and the flag, whichever process it is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bigfleet.cli.processes.all_in_one_settings import AllInOneSettings
from bigfleet.observe.settings import SettingsError

RUN = "from bigfleet.cli.main import main; main()"


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("coordinator", {"--listen": "taken", "--metrics-addr": "0"}),
        ("coordinator", {"--listen": "free", "--metrics-addr": "taken"}),
        ("all-in-one", {"--coordinator-listen": "taken", "--coordinator-metrics-addr": "0"}),
        ("all-in-one", {"--coordinator-listen": "free", "--coordinator-metrics-addr": "taken"}),
    ],
)
def test_a_taken_port_is_told_with_its_flag(
    command: str, flags: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as free, socket.socket() as second:
        free.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        unused = f"127.0.0.1:{free.getsockname()[1]}"
        another = f"127.0.0.1:{second.getsockname()[1]}"
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        taken = f"127.0.0.1:{held.getsockname()[1]}"
        where = {"taken": taken, "free": unused, "0": "0"}
        words = [f"{flag}={where[what]}" for flag, what in flags.items()]
        if command == "all-in-one":
            words += [f"--listen={another}", "--metrics-addr=0"]
        ended = subprocess.run(
            [sys.executable, "-c", RUN, command, "--data-dir", str(tmp_path), *words],
            # Silence of the library has to be the process's own work, not inherited from this one.
            env={k: v for k, v in os.environ.items() if k != "GRPC_VERBOSITY"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    (flag,) = [flag for flag, what in flags.items() if what == "taken"]
    *_, last = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert last.startswith(f"bigfleet: cannot listen on {taken}: ")
    assert flag in last
    assert "Traceback" not in ended.stderr
    assert "add_port" not in ended.stderr


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("coordinator_listen", "--coordinator-listen: 'here' is not an address"),
        ("coordinator_metrics_addr", "--coordinator-metrics-addr: 'here' is not an address"),
        ("listen", "--listen: 'here' is not an address"),
        ("metrics_addr", "--metrics-addr: 'here' is not an address"),
    ],
)
def test_what_is_no_address_is_told_before_anything_starts(flag: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        AllInOneSettings.load({flag: "here"})


def test_the_coordinator_of_all_in_one_is_where_its_shard_can_dial_it() -> None:
    with pytest.raises(
        SettingsError, match=r"--coordinator-listen '127.0.0.1:0': the shard has to dial it"
    ):
        AllInOneSettings.load({"coordinator_listen": "127.0.0.1:0"})


@pytest.mark.parametrize("said", [["c-1:7790"], "c-1:7790", ["nowhere"]])
def test_all_in_one_reports_to_no_other_coordinator(said: object) -> None:
    with pytest.raises(SettingsError, match=r"--coordinator-addr: .* its own: leave it out"):
        AllInOneSettings.load({"coordinator_addr": said})
    flags = {"coordinator_listen": ":17790", "allow_plaintext": True}
    near = AllInOneSettings.load(flags).shard()
    assert near.coordinator_addr == ("127.0.0.1:17790",)
