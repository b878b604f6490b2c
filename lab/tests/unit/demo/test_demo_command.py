"""`bigfleet demo`: what it starts and refuses, what can be played, that all of it ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.processes.all_in_one_settings import AllInOneSettings
from bigfleet_lab.demo.command import app as demo_app
from bigfleet_lab.demo.command import print_welcome, typed
from bigfleet_lab.demo.control import Control, ask, listen
from bigfleet_lab.demo.layout import Addresses, DemoProcess, Layout
from bigfleet_lab.demo.ports import refuse_taken
from bigfleet_lab.demo.scenarios import BY_NAME, SCENARIOS
from bigfleet_lab.demo.state import hold_folder, take_folder
from bigfleet_lab.demo.supervisor import Supervisor
from commandline import run

PATIENT = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
WILLING = "import time; time.sleep(600)"
BROKEN = "raise SystemExit('the disk is full')"


def part(name: str, code: str, **more: object) -> DemoProcess:
    return DemoProcess(name, "", (sys.executable, "-c", code), **more)  # type: ignore[arg-type]


def supervisor(folder: Path, *parts: DemoProcess) -> Supervisor:
    return Supervisor(parts, lambda name: folder / f"{name}.log", lambda _: None)


def test_a_taken_port_is_named_with_the_flag_that_changes_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("demo", "--data-dir", str(tmp_path), "--dashboard-addr", address)
    assert result.exit_code == 1
    assert f"port {address.rpartition(':')[2]}" in result.stderr
    assert "--dashboard-addr" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["8700", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999"])
def test_what_is_no_address_is_bad_input(address: str) -> None:
    with pytest.raises(InputError, match="--shard-addr"):
        refuse_taken({"--shard-addr": address})


def test_two_parts_cannot_have_one_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(InputError, match="--b and --a are both"):
        refuse_taken({"--a": address, "--b": address})


def test_a_folder_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    take_folder(tmp_path)
    take_folder(tmp_path)
    (tmp_path / "form").write_text("0\n")
    with pytest.raises(InputError, match=r"form '0'.*move it away, or choose another --data-dir"):
        take_folder(tmp_path)
    assert (tmp_path / "form").read_text() == "0\n"


def test_a_demo_and_a_fleet_have_different_folders_unless_told_otherwise() -> None:
    of_demo = typer.main.get_command(demo_app).params
    folder = next(each.default for each in of_demo if each.name == "data_dir")
    assert folder == Path(".bigfleet/demo")
    assert AllInOneSettings.model_fields["data_dir"].default != folder


def test_a_fleet_does_not_go_on_with_a_demo(tmp_path: Path) -> None:
    take_folder(tmp_path)
    result = run("all-in-one", "--data-dir", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"bigfleet: {tmp_path} holds the state of a demo (`bigfleet demo`), and a fleet would go "
        "on with its clusters and machines: choose another --data-dir, or move it away\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["form"]


@pytest.mark.parametrize("part", ["coordinator", "shard"])
def test_a_demo_does_not_go_on_with_a_fleet(tmp_path: Path, part: str) -> None:
    (tmp_path / part).mkdir()
    result = run("demo", "--data-dir", str(tmp_path))
    assert result.exit_code == 2
    assert "holds a fleet that is not a demo" in result.stderr
    assert "--data-dir" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == [part]


def test_a_folder_that_cannot_be_made_is_told_with_the_flag(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FailureError, match="--data-dir"):
        take_folder(tmp_path / "file" / "below")


def test_a_second_demo_in_a_folder_is_told_who_has_it_and_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "demo.sock").write_text("of the first")
    with hold_folder(tmp_path):
        result = run("demo", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert f"already (process {os.getpid()})" in result.stderr
    assert "--data-dir" in result.stderr
    assert (tmp_path / "demo.sock").read_text() == "of the first"
    with hold_folder(tmp_path):
        """Free again when the first has ended."""


@pytest.mark.parametrize("columns", [40, 80])
def test_a_narrow_terminal_without_colours_can_be_read(
    columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = run("demo", "scenarios", columns=columns).stdout
    assert "\x1b" not in listed
    assert max(map(len, listed.splitlines())) <= columns
    for scenario in SCENARIOS:
        assert scenario.name in listed.replace("\n", "")
    print_welcome(Layout(Path("x")))
    told = capsys.readouterr().out
    assert "http://127.0.0.1:8700/" in told
    assert "\x1b" not in told


def test_a_demo_needs_no_browser_and_says_where_the_page_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_welcome(Layout(Path("x"), Addresses(dashboard="127.0.0.1:9700")))
    assert "Dashboard: http://127.0.0.1:9700/" in capsys.readouterr().out.splitlines()


def test_what_is_to_be_typed_can_be_typed_where_one_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert typed("bigfleetctl") == "env/bin/bigfleetctl"
    monkeypatch.chdir("/")
    assert typed("bigfleetctl") == str(tmp_path / "env" / "bin" / "bigfleetctl").lstrip("/")
    program = tmp_path / "bigfleetctl"
    program.write_text("#!/bin/sh")
    program.chmod(0o755)
    assert typed("bigfleetctl") == "bigfleetctl"


def test_every_address_has_a_flag_of_the_command() -> None:
    said = run("demo", "--help").stdout.replace("\n", "")
    for flag in Addresses().by_flag():
        # A narrow terminal shortens long flags.
        assert flag[:20] in said


def test_the_parts_are_those_of_a_fleet_and_know_each_other() -> None:
    layout = Layout(Path("x"))
    parts = {each.name: each for each in layout.parts()}
    assert list(parts) == ["provider", "coordinator", "shard", "clusters", "dashboard"]
    assert f"simcloud={layout.at.provider}@north-1" in parts["shard"].words
    assert layout.at.coordinator in parts["shard"].words
    assert str(layout.socket) in parts["dashboard"].words


def test_host_names_of_the_page_reach_the_dashboard() -> None:
    layout = Layout(Path("x"), allowed_hosts=("a.example.org", "b.example.org"))
    words = layout.parts()[-1].words
    assert words[-4:] == ("--allowed-host", "a.example.org", "--allowed-host", "b.example.org")
    assert "--allowed-host" in run("demo", "--help").stdout


def test_all_scenarios_of_the_demo_are_listed() -> None:
    text = run("demo", "scenarios", "--output", "json").stdout
    for name in ("move", "saturate", "critical", "zone", "spot", "soldout", "coordinator", "shard"):
        assert f'"name": "{name}"' in text
    assert len(SCENARIOS) == len(BY_NAME) == 8


def test_programs_are_told_where_everything_is() -> None:
    told = Layout(Path("x")).document()
    assert told["dashboard"] == "http://127.0.0.1:8700/"
    parts = told["parts"]
    assert isinstance(parts, list)
    assert [part["name"] for part in parts if part["address"]] == [
        "provider", "coordinator", "shard", "dashboard",
    ]  # fmt: skip


def test_a_shell_completes_scenarios() -> None:
    asked = {"_BIGFLEET_COMPLETE": "complete_bash", "COMP_WORDS": "bigfleet demo play s"}
    command = Path(sys.executable).with_name("bigfleet")
    done = subprocess.run(
        [command], env={**os.environ, **asked, "COMP_CWORD": "3"}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert {"saturate", "soldout", "spot", "shard"} <= set(done.stdout.split())


def test_playing_without_a_demo_says_how_to_start_one(tmp_path: Path) -> None:
    result = run("demo", "play", "saturate", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "bigfleet demo" in result.stderr


class Told:
    """A stage that remembers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    async def order(self, part: str, **order: object) -> None:
        self.said.append((part, str(order["do"])))

    def strike(self, part: str, number: signal.Signals, down_seconds: float) -> None:
        self.said.append((part, number.name))


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("move", ("clusters", "ask")),
        ("saturate", ("clusters", "ask")),
        ("critical", ("clusters", "ask")),
        ("zone", ("provider", "lose_zone")),
        ("spot", ("provider", "reclaim_spot")),
        ("soldout", ("provider", "sell_out")),
        ("coordinator", ("coordinator", "SIGKILL")),
        ("shard", ("shard", "SIGTERM")),
    ],
)
async def test_a_scenario_touches_what_is_simulated_or_ends_a_process_and_nothing_else(
    name: str, first: tuple[str, str]
) -> None:
    stage = Told()
    playing = asyncio.ensure_future(BY_NAME[name].play(stage))
    for _ in range(20):
        await asyncio.sleep(0)
    playing.cancel()
    assert stage.said[0] == first


async def test_a_demo_answers_at_its_socket() -> None:
    with tempfile.TemporaryDirectory(prefix="bf-") as folder:
        control = Control(supervisor(Path(folder)))
        path = Path(folder) / "s"
        server = await listen(control, path)
        try:
            told = await ask(path, {"do": "list"})
            assert len(told["scenarios"]) == 8
            with pytest.raises(InputError, match="is not a scenario"):
                await ask(path, {"do": "play", "name": "nonsense"})
        finally:
            server.close()


async def test_a_socket_with_too_long_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--data-dir"):
        await listen(Control(supervisor(tmp_path)), tmp_path / ("x" * 120))


async def test_a_process_that_does_not_end_is_ended(tmp_path: Path) -> None:
    everyone = supervisor(tmp_path, part("patient", PATIENT), part("willing", WILLING))
    stop = asyncio.Event()
    running = asyncio.create_task(everyone.run(stop))
    async with asyncio.timeout(30):
        while not all(everyone.pids().values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    stop.set()
    async with asyncio.timeout(5):
        await running
    assert set(everyone.pids().values()) == {None}


async def test_a_demo_may_be_the_first_process_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 1)
    monkeypatch.setattr("os.getppid", lambda: 1)
    begun = tmp_path / "begun"
    touch = f"import pathlib; pathlib.Path({str(begun)!r}).touch(); {WILLING}"
    everyone, stop = supervisor(tmp_path, part("willing", touch)), asyncio.Event()
    running = asyncio.create_task(everyone.run(stop))
    async with asyncio.timeout(30):
        while not begun.exists() and not running.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert everyone["willing"].starts == 1
    stop.set()
    await running


async def test_a_part_that_does_not_start_ends_all_and_its_last_words_are_told(
    tmp_path: Path,
) -> None:
    everyone = supervisor(tmp_path, part("broken", BROKEN), part("willing", WILLING))
    with pytest.raises(FailureError, match=r"broken does not start: .*the disk is full"):
        async with asyncio.timeout(60):
            await everyone.run(asyncio.Event())
    assert set(everyone.pids().values()) == {None}


async def test_a_part_that_is_killed_comes_back(tmp_path: Path) -> None:
    everyone = supervisor(tmp_path, part("willing", WILLING))
    stop = asyncio.Event()
    running = asyncio.create_task(everyone.run(stop))
    async with asyncio.timeout(30):
        while everyone["willing"].pid is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        everyone["willing"].strike(signal.SIGKILL, 0.01)
        while everyone["willing"].starts < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    stop.set()
    await running
