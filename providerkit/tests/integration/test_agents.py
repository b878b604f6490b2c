"""The agent channel over restarts of either side, with the real agent script and curl."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
import yaml

from bigfleet_providerkit import CommandKind, Host, OptionError
from bigfleet_providerkit.hostexec.channels.agent import AgentChannel, agent_user_data, check_secret
from bigfleet_providerkit.hostexec.contract import HookCall, command_for, script_text
from bigfleet_providerkit.hostexec.options import AgentOptions, SshOptions
from bigfleet_providerkit.process.prepare import check_start
from bigfleet_providerkit.testing import eventually

HOST = Host("i-1", machine_id="machine")


@dataclass
class AgentWorld:
    """A host in a folder, with the hook that a test gives it, and the server's certificate."""

    folder: Path

    def __post_init__(self) -> None:
        self.ca = trustme.CA()
        self.ca.cert_pem.write_to_path(self.folder / "ca.pem")
        self.certify(self.ca)
        (self.folder / "agent.sh").write_text(script_text("agent.sh"))

    def certify(self, ca: trustme.CA) -> None:
        leaf = ca.issue_cert("127.0.0.1")
        leaf.private_key_pem.write_to_path(self.folder / "key.pem")
        leaf.cert_chain_pems[0].write_to_path(self.folder / "cert.pem")

    def hook(self, text: str) -> None:
        path = self.folder / "hook"
        path.write_text(f"#!/bin/sh\necho run >>{self.folder}/runs\n{text}\n")
        path.chmod(0o755)

    @property
    def runs(self) -> int:
        path = self.folder / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ, "BIGFLEET_AGENT_CONFIG": str(self.folder / "config.json"),
            "BIGFLEET_AGENT_CA": str(self.folder / "ca.pem"),
            "BIGFLEET_RUN": str(self.folder / "run"),
        }  # fmt: skip

    @contextlib.asynccontextmanager
    async def server(self, port: int = 0) -> AsyncIterator[AgentChannel]:
        channel = AgentChannel(check_secret("s" * 32), lambda machine: "op-0")
        files = (str(self.folder / "cert.pem"), str(self.folder / "key.pem"))
        await channel.start(f"127.0.0.1:{port}", *files)
        try:
            yield channel
        finally:
            await channel.aclose()

    def configure(self, channel: AgentChannel) -> None:
        config = {
            "endpoint": f"https://127.0.0.1:{channel.port}", "machine_id": "machine",
            "token": channel.token("machine", "op-0"), "hook": str(self.folder / "hook"),
        }  # fmt: skip
        (self.folder / "config.json").write_text(json.dumps(config))

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        process = await asyncio.create_subprocess_exec(
            "sh", str(self.folder / "agent.sh"), env=self.environment, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def perform(self, command: dict[str, object]) -> dict[str, Any]:
        """One command in the agent's form that a caller can drive."""
        if not (self.folder / "config.json").exists():
            (self.folder / "config.json").write_text(
                json.dumps({"machine_id": "machine", "hook": str(self.folder / "hook")})
            )
        path = self.folder / "command.json"
        path.write_text(json.dumps(command))
        done = subprocess.run(
            ["sh", str(self.folder / "agent.sh"), "run", str(path)], env=self.environment,
            capture_output=True, check=True, timeout=30,
        )  # fmt: skip
        assert not path.exists()
        return dict(json.loads(done.stdout)) if done.stdout else {}


def a_call(kind: CommandKind, operation: str = "op-1", limit: float = 20.0) -> HookCall:
    return HookCall(
        kind, "x", "label", "machine", operation, limit, cluster="cluster-a", secret=b"join",
        provider_id="cloud:///h-1",
    )  # fmt: skip


async def test_a_new_provider_learns_from_the_host_what_was_done(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook("exit 0")
    async with world.server() as first:
        world.configure(first)
        port = first.port
        async with world.agent():
            done = await first.run(HOST, command_for(a_call(CommandKind.CONFIGURE)))
            assert done.exit_code == 0
            await first.aclose()
            async with world.server(port) as second:
                probe = await second.run(HOST, command_for(a_call(CommandKind.PROBE)))
                assert probe.exit_code == 0
                other = command_for(a_call(CommandKind.PROBE, "op-2"))
                assert (await second.run(HOST, other)).exit_code == 1


async def test_an_acknowledgement_is_repeated_until_a_provider_answers(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    async with world.server() as first:
        world.configure(first)
        port = first.port
        async with world.agent():
            work = asyncio.create_task(first.run(HOST, command_for(a_call(CommandKind.CONFIGURE))))

            async def started() -> bool:
                return world.runs == 1

            await eventually(started)
            work.cancel()
            await first.aclose()
            (tmp_path / "go").touch()

            async def kept() -> bool:
                return (tmp_path / "run" / "ack.json").exists()

            await eventually(kept, what="the kept acknowledgement")
            async with world.server(port) as second:

                async def answered() -> bool:
                    return not (tmp_path / "run" / "ack.json").exists()

                await eventually(answered, what="the answer to the acknowledgement")
                # Known from the acknowledgement: no agent is needed for this probe.
                quick = command_for(a_call(CommandKind.PROBE, limit=0.01))
                assert (await second.run(HOST, quick)).exit_code == 0
    assert world.runs == 1


def test_an_unknown_command_is_refused_and_not_noted_as_done(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook("exit 0")
    output = world.perform({"id": "op-1", "operation": "op-1", "type": "dance"})
    assert (output["command_id"], output["ok"]) == ("op-1", False)
    assert "does not know the command type dance" in output["error"]
    assert not (tmp_path / "run" / "done").exists()
    assert world.runs == 0


def test_a_command_that_was_done_is_acknowledged_and_not_run_again(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook("exit 0")
    drain: dict[str, object] = {
        "id": "op-1", "operation": "op-1", "type": "drain", "grace_seconds": 3,
        "timeout_seconds": 20,
    }  # fmt: skip
    for _ in range(2):
        assert world.perform(drain)["ok"] is True
    assert world.runs == 1


def test_a_hook_that_wants_another_try_is_not_acknowledged(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook("exit 75")
    drain: dict[str, object] = {"id": "op-1", "operation": "op-1", "type": "drain"}
    assert world.perform(drain) == {}
    world.hook('echo "no \\"route\\" to it" >&2; exit 3')
    output = world.perform(drain)
    assert (output["ok"], output["error"]) == (False, "no route to it  (exit code 3)")


def test_the_hook_gets_provider_and_host_id(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.hook(f'echo "$BIGFLEET_PROVIDER $BIGFLEET_PROVIDER_ID $BIGFLEET_TAINTS" >{tmp_path}/env')
    world.perform(
        {"id": "1", "operation": "1", "type": "drain", "provider": "label",
         "provider_id": "aws:///eu-west-1a/i-1", "taints": "a=b:NoSchedule c=d:NoExecute"}
    )  # fmt: skip
    assert (tmp_path / "env").read_text() == (
        "label aws:///eu-west-1a/i-1 a=b:NoSchedule c=d:NoExecute\n"
    )


async def test_the_server_takes_a_new_certificate_without_a_restart(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)

    async def status(ca: trustme.CA) -> int:
        trust = ssl.create_default_context()
        ca.configure_trust(trust)
        url = f"https://127.0.0.1:{channel.port}/v1/command?machine_id=machine"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trust) as answer:
            return answer.status

    async with world.server() as channel:
        assert await status(world.ca) == 401
        other = trustme.CA()
        world.certify(other)
        assert await status(other) == 401
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await status(world.ca)
        (tmp_path / "cert.pem").write_text("half of a certifi")
        assert await status(other) == 401


def test_the_agent_is_a_unit_that_a_reboot_starts_again() -> None:
    config = yaml.safe_load(agent_user_data("https://h:1", "CA", "machine", "tok"))
    paths = [entry["path"] for entry in config["write_files"]]
    assert "/etc/systemd/system/bigfleet-agent.service" in paths
    assert ["systemctl", "enable", "--now", "bigfleet-agent.service"] in config["runcmd"]


async def test_all_missing_options_of_a_channel_are_named_at_once() -> None:
    from kitworld import SPEC

    with pytest.raises(OptionError) as agents:
        await check_start(SPEC, AgentOptions(), fake=False, store_given=True)
    for name in ("endpoint", "tls-cert", "tls-key", "secret"):
        assert f"--bootstrap-{name}" in str(agents.value)
    with pytest.raises(OptionError, match="--ssh-key"):
        await check_start(SPEC, SshOptions(), fake=False, store_given=True)
