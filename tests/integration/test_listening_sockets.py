"""Every process of ours listens on loopback, unless its owner says something else.

All of them run beside each other with their defaults, on a machine of their own, and the kernel
says what listens there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_process import start_every_process
from new_machine import NewMachine
from real_fleet import eventually

from bigfleet_providerkit import KitOptions, OptionError
from bigfleet_providerkit.hostexec.options import AgentOptions
from bigfleet_providerkit.options.parse import parse_options
from commandline import run

EXPOSED = [
    ("bigfleet coordinator --listen=0.0.0.0:7790", "--allow-plaintext"),
    ("bigfleet coordinator --metrics-addr=:8790", "--allow-plaintext-pages"),
    ("bigfleet shard --shard-id s-1 --listen=:7780", "--allow-plaintext"),
    ("bigfleet shard --shard-id s-1 --metrics-addr=0.0.0.0:8780", "--allow-plaintext-pages"),
    ("bigfleet all-in-one --listen=0.0.0.0:7780", "--allow-plaintext"),
    ("bigfleet all-in-one --coordinator-listen=0.0.0.0:7790", "--allow-plaintext"),
    ("bigfleet all-in-one --coordinator-metrics-addr=:8790", "--allow-plaintext-pages"),
    ("bigfleet operator --cluster-id shop --shard-addr s-1:7780 --allow-stub-bootstrap "
     "--metrics-addr=0.0.0.0:8770", "--allow-plaintext-pages"),
    ("bigfleet pod-controller --metrics-addr=0.0.0.0:8080", "--allow-plaintext-pages"),
    ("bigfleet dashboard --coordinator c-1:7790 --listen=0.0.0.0:8700", "--allow-plaintext"),
]  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[NewMachine]:
    with NewMachine(tmp_path, {"elsewhere": "10.7.0.1"}) as started:
        yield started


def test_with_defaults_nothing_listens_but_on_loopback(machine: NewMachine) -> None:
    logs = start_every_process(machine).values()
    assert {address for address, _ in machine.listening()} == {"127.0.0.1"}
    said = "".join(log.read_text("utf-8") for log in logs)
    logged = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", said)}
    assert {7780, 7790, 9001, 9002} <= logged
    assert AgentOptions().bootstrap_addr == "127.0.0.1:9003"


@pytest.mark.parametrize(("command", "flag"), EXPOSED, ids=[command for command, _ in EXPOSED])
def test_plaintext_for_other_machines_is_refused_by_flag(command: str, flag: str) -> None:
    ended = run(*command.split()[1:])
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    assert line.endswith(f"or accept it with {flag}")


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ("--addr=0.0.0.0:9001", "--allow-plaintext"),
        ("--metrics-addr=:9002", "--allow-plaintext-pages"),
    ],
)
def test_plaintext_of_a_provider_is_refused_by_flag(option: str, flag: str) -> None:
    with pytest.raises(OptionError, match=rf"accept it with {flag}$"):
        parse_options(KitOptions, [option, "--use-fake-backend"], {})
    parse_options(KitOptions, [option, "--use-fake-backend", flag], {})


def test_an_address_of_all_interfaces_is_logged_as_it_is(machine: NewMachine) -> None:
    log = machine.start("exec bigfleet coordinator --listen :7790 --allow-plaintext")
    eventually(lambda: "coordinator listening" in log.read_text("utf-8"), "it listens", 60)
    where = {address for address, port in machine.listening() if port == 7790}
    assert where <= {"0.0.0.0", f"[{'0' * 32}]"}
    assert re.search(r"(\[::\]|0\.0\.0\.0):7790", log.read_text("utf-8"))
    machine.run("bigfleetctl list-shards --coordinator elsewhere:7790")
