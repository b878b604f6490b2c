"""Each channel against a real peer: an SSH server, an HTTPS agent, a shell behind a command API."""

import asyncio
import base64
import contextlib
import dataclasses
import email
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import asyncssh
import pytest
import trustme
import yaml

from bigfleet_providerkit import CommandKind, Host, HostResult, OptionError, Retryable, Unauthorized
from bigfleet_providerkit.clock import SystemClock
from bigfleet_providerkit.errors import HookFailed
from bigfleet_providerkit.hostexec.channels.agent import AgentChannel, agent_user_data, check_secret
from bigfleet_providerkit.hostexec.channels.command import CommandChannel, in_chunks
from bigfleet_providerkit.hostexec.channels.guest import GuestChannel, GuestStatus
from bigfleet_providerkit.hostexec.channels.ssh import SshAccess, SshChannel, load_key
from bigfleet_providerkit.hostexec.contract import HookCall, command_for, script_text
from bigfleet_providerkit.hostexec.hostkey import HostKey, mint_host_key, new_seed
from bigfleet_providerkit.hostexec.userdata import first_boot, multipart
from bigfleet_providerkit.substrate import HostCommand

BLOB = b"join me\0\xff" * 900


def a_hook(folder: Path, exit_code: int = 0) -> Path:
    hook = folder / "hook"
    hook.write_text(
        f'#!/bin/sh\n[ -e "${{BIGFLEET_BLOB:-}}" ] && cp "$BIGFLEET_BLOB" {folder}/got\n'
        f"echo said >&2\nexit {exit_code}\n"
    )
    hook.chmod(0o755)
    return hook


def a_command(
    folder: Path, kind: CommandKind = CommandKind.CONFIGURE, code: int = 0
) -> HostCommand:
    call = HookCall(
        kind, str(a_hook(folder, code)), "label", "machine", "op-1", 20.0,
        cluster="cluster-a", secret=BLOB,
    )  # fmt: skip
    command = command_for(call)
    script = command.script.replace("/run/bigfleet", f"{folder}/run")
    return HostCommand(
        command.kind, script, command.limit, command.operation_id, command.secret,
        command.cluster, command.grace, command.label, command.taints, command.provider_id,
    )  # fmt: skip


@contextlib.asynccontextmanager
async def an_ssh_host(folder: Path, key: HostKey) -> AsyncIterator[tuple[int, str]]:
    client = asyncssh.generate_private_key("ssh-ed25519")
    (folder / "client").write_bytes(client.export_private_key())
    (folder / "client").chmod(0o600)
    (folder / "authorized").write_bytes(client.export_public_key())

    async def shell(process: "asyncssh.SSHServerProcess[bytes]") -> None:
        blob = await process.stdin.read()
        done = await asyncio.to_thread(
            subprocess.run, ["sh", "-c", str(process.command)], input=blob, capture_output=True
        )
        process.stdout.write(done.stdout)
        process.stderr.write(done.stderr)
        process.exit(done.returncode)

    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[asyncssh.import_private_key(key.private)],
        authorized_client_keys=str(folder / "authorized"), process_factory=shell, encoding=None,
    )  # fmt: skip
    try:
        yield server.sockets[0].getsockname()[1], str(folder / "client")
    finally:
        server.close()
        await server.wait_closed()


async def test_ssh_delivers_to_the_host_whose_key_was_pinned(tmp_path: Path) -> None:
    key = mint_host_key(new_seed())
    pinned: list[str] = []
    async with an_ssh_host(tmp_path, key) as (port, client):
        channel = SshChannel(SshAccess(client, "root", port), lambda host, pin: pinned.append(pin))
        good = Host("i-1", address="127.0.0.1", pin=key.pin)
        result = await channel.run(good, a_command(tmp_path))
        assert (result.exit_code, result.stderr) == (0, "said\n")
        assert (tmp_path / "got").read_bytes() == BLOB
        failing = await channel.run(good, a_command(tmp_path, code=3))
        assert failing.exit_code == 3
        assert pinned == []
        await channel.run(Host("i-1", address="127.0.0.1"), a_command(tmp_path))
        assert pinned == [key.pin]
        other = Host("i-1", address="127.0.0.1", pin=mint_host_key(new_seed()).pin)
        with pytest.raises(Unauthorized, match="not the one it was made with"):
            await channel.run(other, a_command(tmp_path))
    with pytest.raises(Retryable, match="does not answer"):
        await channel.run(good, a_command(tmp_path))


class JumpHost(asyncssh.SSHServer):
    """Lets connections through, and counts its own."""

    connections = 0
    forwarded: list[tuple[str, int]]

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        type(self).connections += 1

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        self.forwarded.append((dest_host, dest_port))
        return True


async def test_hosts_are_reached_over_a_jump_host_by_one_shared_connection(
    tmp_path: Path,
) -> None:
    key, jump_key = mint_host_key(new_seed()), mint_host_key(new_seed())
    jump: type[JumpHost] = type("OneJumpHost", (JumpHost,), {"connections": 0, "forwarded": []})
    async with an_ssh_host(tmp_path, key) as (port, client):
        server = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=jump,
            server_host_keys=[asyncssh.import_private_key(jump_key.private)],
            authorized_client_keys=str(tmp_path / "authorized"),
        )  # fmt: skip
        place = f"ops@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        (tmp_path / "known").write_text(f"127.0.0.1 {jump_key.public}\n")
        (tmp_path / "other").write_text(f"127.0.0.1 {key.public}\n")
        access = SshAccess(client, "root", port, place, str(tmp_path / "known"))
        channel = SshChannel(access, lambda host, pin: None)
        host = Host("i-1", address="127.0.0.1", pin=key.pin)
        for _ in range(2):
            assert (await channel.run(host, a_command(tmp_path))).exit_code == 0
        assert jump.connections == 1
        assert jump.forwarded == [("127.0.0.1", port)] * 2
        foreign = Host("i-1", address="127.0.0.1", pin=mint_host_key(new_seed()).pin)
        with pytest.raises(Unauthorized, match="not the one it was made with"):
            await channel.run(foreign, a_command(tmp_path))
        await channel.aclose()
        strange = dataclasses.replace(access, jump_known_hosts=str(tmp_path / "other"))
        with pytest.raises(Retryable, match=f"jump host {place}"):
            await SshChannel(strange, lambda host, pin: None).run(host, a_command(tmp_path))
        server.close()
        await server.wait_closed()


def test_ssh_refuses_to_start_without_a_key(tmp_path: Path) -> None:
    for path in (None, str(tmp_path / "nothing")):
        with pytest.raises(OptionError, match="--ssh-key"):
            load_key(path)
    (tmp_path / "bad").write_text("no key")
    with pytest.raises(OptionError, match="not a usable private key"):
        load_key(str(tmp_path / "bad"))


def test_a_host_key_travels_in_user_data() -> None:
    key = mint_host_key(new_seed())
    for base in ("", "#cloud-config\npackages: [x]\n", "#!/bin/sh\necho hi\n"):
        text = first_boot(base, "/opt/bigfleet/bootstrap", key)
        assert key.public in text
        assert "path: /opt/bigfleet/bootstrap" in text
        assert base.rstrip() in text


def test_documents_of_user_data_add_up() -> None:
    base = "#cloud-config\nwrite_files:\n  - path: /etc/motd\n    content: hello\n"
    ordered = first_boot(base, "/opt/bigfleet/bootstrap", HostKey())
    agent = agent_user_data("https://h:1", "CA", "machine", "tok", "/opt/other")
    message = email.message_from_string(multipart(ordered, agent))
    documents = [part for part in message.walk() if not part.is_multipart()]
    assert [part.get_content_type() for part in documents] == ["text/cloud-config"] * 3
    assert {part["Merge-Type"] for part in documents} == {"list(append)+dict(recurse_list)+str()"}
    written = [
        entry["path"]
        for part in documents
        for entry in yaml.safe_load(str(part.get_payload()))["write_files"]
    ]
    assert written[:2] == ["/opt/bigfleet/bootstrap", "/etc/motd"]
    assert "/etc/bigfleet-agent/config.json" in written


@contextlib.asynccontextmanager
async def an_agent_server(folder: Path, operation: str = "op-0") -> AsyncIterator[AgentChannel]:
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    channel = AgentChannel(
        check_secret("s" * 32), lambda machine: operation if machine == "machine" else ""
    )
    await channel.start("127.0.0.1:0", str(folder / "cert.pem"), str(folder / "key.pem"))
    try:
        yield channel
    finally:
        await channel.aclose()


async def test_a_real_agent_polls_runs_the_hook_and_acknowledges(tmp_path: Path) -> None:
    async with an_agent_server(tmp_path) as channel:
        config = tmp_path / "config.json"
        token = channel.token("machine", "op-0")
        config.write_text(
            f'{{"endpoint": "https://127.0.0.1:{channel.port}", "machine_id": "machine", '
            f'"token": "{token}", "hook": "{a_hook(tmp_path)}"}}'
        )
        (tmp_path / "agent.sh").write_text(script_text("agent.sh"))
        env = {
            **os.environ, "BIGFLEET_AGENT_CONFIG": str(config),
            "BIGFLEET_AGENT_CA": str(tmp_path / "ca.pem"), "BIGFLEET_RUN": str(tmp_path / "run"),
        }  # fmt: skip
        agent = await asyncio.create_subprocess_exec(
            "sh", str(tmp_path / "agent.sh"), env=env, start_new_session=True
        )
        try:
            host = Host("i-1", machine_id="machine")
            result = await channel.run(host, a_command(tmp_path))
            assert result.exit_code == 0
            assert (tmp_path / "got").read_bytes() == BLOB
            assert not (tmp_path / "run" / "blob").exists()
            probe = a_command(tmp_path, CommandKind.PROBE)
            assert (await channel.run(host, probe)).exit_code == 0
            a_hook(tmp_path, 3)
            call = HookCall(CommandKind.DRAIN, "x", "label", "machine", "op-2", 20.0, grace=1)
            failed = await channel.run(host, command_for(call))
            assert (failed.exit_code, failed.stderr.strip()) == (1, "said  (exit code 3)")
        finally:
            os.killpg(agent.pid, signal.SIGKILL)
            await agent.wait()


async def test_a_host_of_an_earlier_life_gets_nothing(tmp_path: Path) -> None:
    async with an_agent_server(tmp_path, operation="op-new") as channel:
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        url = f"https://127.0.0.1:{channel.port}/v1/command?machine_id=machine"
        async with aiohttp.ClientSession() as session:
            for token in ("", channel.token("machine", "op-old"), channel.token("x", "op-new")):
                headers = {"Authorization": f"Bearer {token}"}
                async with session.get(url, ssl=context, headers=headers) as answer:
                    assert answer.status == 401
            headers = {"Authorization": f"Bearer {channel.token('machine', 'op-new')}"}
            bad = url.replace("command", "ack")
            async with session.post(bad, ssl=context, headers=headers, data="junk") as answer:
                assert answer.status == 400


async def test_an_agent_that_never_answers_ends_with_the_limit(tmp_path: Path) -> None:
    async with an_agent_server(tmp_path) as channel:
        call = HookCall(CommandKind.DRAIN, "x", "label", "machine", "op-2", 0.05)
        with pytest.raises(HookFailed, match="did not answer"):
            await channel.run(Host("i-1", machine_id="machine"), command_for(call))


def test_agent_secrets_are_never_made_up() -> None:
    for secret in (None, "", "short"):
        with pytest.raises(OptionError, match="BIGFLEET_BOOTSTRAP_SECRET"):
            check_secret(secret)
    text = agent_user_data("https://h:1", "CA", "machine", "tok")
    config = base64.b64encode(
        b'{"endpoint": "https://h:1", "machine_id": "machine", "token": "tok",'
        b' "hook": "/opt/bigfleet/bootstrap"}'
    )
    assert config.decode() in text


async def test_a_sealed_blob_is_opened_on_the_host_alone(tmp_path: Path) -> None:
    history: list[str] = []

    async def run_script(host: Host, script: str, limit: float) -> HostResult:
        history.append(script)
        done = await asyncio.to_thread(
            subprocess.run, ["sh", "-c", script], capture_output=True, stdin=subprocess.DEVNULL
        )
        return HostResult(done.returncode, done.stdout.decode(), done.stderr.decode())

    channel = CommandChannel(run_script, folder=str(tmp_path / "seal"))
    result = await channel.run(Host("i-1"), a_command(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "got").read_bytes() == BLOB
    assert not any("join me" in script for script in history)
    assert base64.b64encode(BLOB)[:40].decode() not in "".join(history)
    assert list((tmp_path / "seal").iterdir()) == []
    drained = await channel.run(Host("i-1"), a_command(tmp_path, CommandKind.DRAIN, 5))
    assert drained.exit_code == 5


async def test_a_cloud_with_longer_commands_needs_fewer_of_them(tmp_path: Path) -> None:
    history: list[str] = []

    async def run_script(host: Host, script: str, limit: float) -> HostResult:
        history.append(script)
        done = await asyncio.to_thread(subprocess.run, ["sh", "-c", script], capture_output=True)
        return HostResult(done.returncode, done.stdout.decode(), done.stderr.decode())

    channel = CommandChannel(run_script, chunk=32 * 1024, folder=str(tmp_path / "seal"))
    command = dataclasses.replace(a_command(tmp_path), secret=BLOB * 30)
    assert len(command.secret) > 200_000
    assert (await channel.run(Host("i-1"), command)).exit_code == 0
    assert (tmp_path / "got").read_bytes() == command.secret
    assert len(history) < 15


def test_chunks_end_at_line_ends() -> None:
    parts = in_chunks(["x" * 64] * 100)
    assert all(len(part) <= 3000 for part in parts)
    assert "\n".join(parts) == "\n".join(["x" * 64] * 100)


def _write(path: Path, data: bytes, *, append: bool) -> None:
    with path.open("ab" if append else "wb") as file:
        file.write(data)


def _shell(script: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class ShellGuest:
    """A guest agent whose guest is this machine."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.writes: list[int] = []

    async def write_file(self, host: Host, path: str, data: bytes, *, append: bool) -> None:
        self.writes.append(len(data))
        _write(Path(path), data, append=append)

    async def execute(self, host: Host, script: str) -> str:
        self.processes.append(_shell(script))
        return str(len(self.processes) - 1)

    async def status(self, host: Host, handle: str) -> GuestStatus:
        process = self.processes[int(handle)]
        if process.poll() is None:
            return GuestStatus(None)
        out, err = process.communicate()
        return GuestStatus(HostResult(process.returncode, out.decode(), err.decode()))


async def test_a_guest_agent_gets_the_blob_in_pieces(tmp_path: Path) -> None:
    guest = ShellGuest()
    channel = GuestChannel(
        guest, SystemClock(), lambda: asyncio.sleep(0.01), folder=str(tmp_path / "guest")
    )
    command = a_command(tmp_path)
    big = b"x" * 150_000
    sent = HostCommand(command.kind, command.script, 20.0, "op-1", big)
    result = await channel.run(Host("d-1"), sent)
    assert (result.exit_code, result.stderr) == (0, "said\n")
    assert (tmp_path / "got").read_bytes() == big
    assert len(guest.writes) == 3
    assert (tmp_path / "guest").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "guest").iterdir()) == []
    slow = HostCommand(CommandKind.DRAIN, "exec sleep 5", 0.05, "op-2")
    with pytest.raises(HookFailed, match="did not end"):
        await channel.run(Host("d-1"), slow)
    guest.processes[-1].kill()
    guest.processes[-1].communicate()
    assert sys.platform == "linux"
