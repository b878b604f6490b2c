"""The log lines of a provider that keep their words: each is provoked once, and found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from log_lines import Line, Said, look_for, of_json, promised

from bigfleet_provider_template.spec import SPEC
from bigfleet_providerkit.main import run
from bigfleet_providerkit.process import running_provider
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard

TEMPLATE = ProviderProcess.module("bigfleet_provider_template")
EXITED = "component exited"


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    """What a provider writes: a call that changes something, one that reads, one refused."""
    log = tmp_path_factory.mktemp("provider") / "log"
    process = ProviderProcess(
        TEMPLATE, "--use-fake-backend", "--seed-count=3", "--metrics-addr=127.0.0.1:0",
        "--log-level=debug", "--log-format=json", log=log,
    )  # fmt: skip
    with process.wait_open() as provider:
        asyncio.run(_calls(provider))
        assert provider.stop() == 0
    return of_json(log.read_text())


async def _calls(provider: ProviderProcess) -> None:
    async with provider.channel() as channel:
        shard = Shard(Remote(channel))
        machine = (await shard.machines())[0].id
        await shard.create(machine)
        with pytest.raises(grpc.aio.AioRpcError):
            await shard.create("no/such/machine")


@pytest.mark.parametrize(
    "line", [each for each in promised("provider", "all") if each.words != EXITED], ids=str
)
def test_a_line_is_said_with_its_level_and_its_keys(logged: list[Said], line: Line) -> None:
    look_for(line, logged)


def test_a_bug_ends_the_process_with_a_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def breaks(*_given: object, **_named: object) -> None:
        raise RuntimeError("a part broke")

    monkeypatch.setattr(running_provider, "start", breaks)
    words = ["--use-fake-backend", f"--state={tmp_path / 's.db'}", "--log-format=json"]
    assert run(SPEC, words, {}) == 1
    (line,) = (line for line in promised("all") if line.words == EXITED)
    look_for(line, of_json(capsys.readouterr().err))
