"""A cloud as its callers meet it: over TLS, with facts in a file, and killing them on order."""

import asyncio
import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bigfleet_fakecloud import Call, Cloud, Moment, Reply, Rule, TestAuthority, serving
from bigfleet_fakecloud.behaviour.background import Background
from bigfleet_fakecloud.behaviour.faults import Effect
from bigfleet_fakecloud.errors import ScriptError
from bigfleet_fakecloud.examples.tiny import tiny
from guestpage import HostPage, until_now


def test_a_cloud_is_served_over_tls_with_an_authority_of_its_own(tmp_path: Path) -> None:
    authority = TestAuthority.make(tmp_path)
    with serving(tiny(), authority=authority) as url:
        assert url.startswith("https://")
        state = f"{url}/_control/state"
        with urllib.request.urlopen(state, context=authority.client_context()) as answer:
            assert json.loads(answer.read())["facts"]["ca"] == str(authority.ca)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(state, context=ssl.create_default_context())


def test_a_process_writes_what_its_callers_must_know(tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    command = [
        sys.executable, "-m", "bigfleet_fakecloud.examples.tiny",
        "--addr=127.0.0.1:0", "--tls", f"--facts={facts}",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        until_now(facts.exists, "the file of facts")
        known = json.loads(facts.read_text())
        trust = ssl.create_default_context(cafile=known["ca"])
        assert known["endpoint"].startswith("https://127.0.0.1:")
        url = f"{known['endpoint']}/_control/state"
        with urllib.request.urlopen(url, context=trust) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert not Path(known["ca"]).exists()


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
def test_a_caller_is_killed_at_exactly_the_call_that_a_test_chose(moment: Moment) -> None:
    made: list[str] = []
    cloud = Cloud("killing")

    @cloud.route("POST", "/things", "CreateThing")
    def create(call: Call) -> Reply:
        made.append("thing")
        return Reply(201, {})

    program = (
        "import sys, urllib.request\n"
        "sys.stdin.readline()\n"
        "for _ in range(3): urllib.request.urlopen(sys.argv[1], b'{}')\n"
    )
    with serving(cloud) as url:
        caller = subprocess.Popen(
            [sys.executable, "-c", program, f"{url}/things"], stdin=subprocess.PIPE
        )
        cloud.faults.add(Rule("CreateThing", moment, Effect.KILL, skip=1, pid=caller.pid))
        caller.communicate(b"go\n", timeout=30)
    assert caller.returncode == -signal.SIGKILL
    assert len(made) == (1 if moment is Moment.BEFORE else 2)


def test_only_the_effect_kill_names_a_process() -> None:
    for wrong in ({"effect": "kill"}, {"effect": "drop", "pid": 77}, {"effect": "kill", "pid": 1}):
        with pytest.raises(ScriptError, match="pid"):
            Rule.parse(wrong)


def test_a_service_runs_as_long_as_the_cloud_is_served() -> None:
    steps: list[str] = []

    class Recorder:
        async def start(self) -> None:
            steps.append("start")

        async def stop(self) -> None:
            steps.append("stop")

    cloud = tiny()
    cloud.background.serve(Recorder())
    with serving(cloud) as url:
        urllib.request.urlopen(f"{url}/_control/state").close()
        assert steps == ["start"]
    assert steps == ["start", "stop"]


async def test_work_that_is_begun_before_there_is_a_loop_waits_for_it() -> None:
    background, ran = Background(), asyncio.Event()

    async def work() -> None:
        ran.set()

    await asyncio.to_thread(background.begin, work)
    assert not ran.is_set()
    await background.start()
    await asyncio.wait_for(ran.wait(), 10)
    await background.stop()


async def test_an_opened_operation_ends_from_outside_and_once() -> None:
    page = HostPage()
    operation = page.cloud.operations.open("RunCommand", "h-1")
    assert not operation.done
    page.cloud.operations.finish(operation.ref)
    page.cloud.operations.finish(operation.ref, ScriptError("late"))  # type: ignore[arg-type]
    ended = page.cloud.operations.get(operation.ref)
    assert (ended.done, ended.error) == (True, None)
