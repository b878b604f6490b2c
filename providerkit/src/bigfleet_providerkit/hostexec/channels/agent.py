"""The agent channel: hosts poll the provider over HTTPS for what they are to do.

`GET /v1/command?machine_id=` is a long poll (204 = nothing), `POST /v1/ack?machine_id=` says how a
command ended. The bearer token is an HMAC over machine and Create operation, so a host of an
earlier life gets nothing. The secret is given by people, never made up: hosts outlive the process.

A command has an `id`, by which it is acknowledged, and the `operation` that it belongs to. The
agent repeats an acknowledgement until it is answered, so one that was sent while no provider ran
arrives at the next; whether an operation ended well is asked of the host itself (`probe`). The
server reads its certificate again when the files change.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from bigfleet_providerkit.errors import HookFailed, OptionError, StartError
from bigfleet_providerkit.hostexec.channels.certificate import ReloadingCertificate
from bigfleet_providerkit.hostexec.contract import DEFAULT_HOOK, script_text
from bigfleet_providerkit.hostexec.userdata import written_file
from bigfleet_providerkit.substrate import CommandKind, Host, HostCommand, HostResult

LONG_POLL = 25.0
SHORTEST_SECRET = 32
LARGEST_BODY = 64 * 1024
PROGRAM = "/usr/local/sbin/bigfleet-agent"
# Enabled, so that a host that was stopped and started again polls as before.
UNIT = f"""\
[Unit]
Description=BigFleet agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={PROGRAM}
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
Current = Callable[[str], str]


def token_for(secret: bytes, machine: str, operation: str) -> str:
    """The bearer token of one life of one machine."""
    digest = hmac.new(secret, f"{machine}\0{operation}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def check_secret(secret: str | None) -> bytes:
    """The secret as bytes; refuses one that is missing or short."""
    if not secret or len(secret.encode()) < SHORTEST_SECRET:
        raise OptionError(
            f"--bootstrap-secret (BIGFLEET_BOOTSTRAP_SECRET) is missing or shorter than "
            f"{SHORTEST_SECRET} bytes; it must stay the same over restarts"
        )
    return secret.encode()


def agent_user_data(
    endpoint: str, ca: str, machine: str, token: str, hook: str = DEFAULT_HOOK
) -> str:
    """User data that installs and starts the agent; join it with `Launch.user_data`.

    `hook` is `--bootstrap-hook`.
    """
    config = json.dumps({"endpoint": endpoint, "machine_id": machine, "token": token, "hook": hook})
    lines = ["#cloud-config", "write_files:"]
    lines += written_file("/etc/bigfleet-agent/config.json", "0600", config)
    lines += written_file("/etc/bigfleet-agent/ca.pem", "0644", ca)
    lines += written_file(PROGRAM, "0755", script_text("agent.sh"))
    lines += written_file("/etc/systemd/system/bigfleet-agent.service", "0644", UNIT)
    lines += ["runcmd:", "  - [systemctl, daemon-reload]"]
    lines += ["  - [systemctl, enable, --now, bigfleet-agent.service]"]
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class _Pending:
    """One command, until its host has acknowledged how it ended."""

    body: dict[str, object]
    ended: asyncio.Future[HostResult]


@dataclass(slots=True)
class _Mailbox:
    command: _Pending | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    done: str = ""


class AgentChannel:
    """Serves the agents of all hosts."""

    def __init__(self, secret: bytes, current_operation: Current) -> None:
        self._secret = secret
        self._current = current_operation
        self._boxes: dict[str, _Mailbox] = {}
        self._runner: web.AppRunner | None = None
        self._probes = 0
        self.port = 0

    def token(self, machine: str, operation: str) -> str:
        """The token that a new host gets with its user data."""
        return token_for(self._secret, machine, operation)

    async def start(self, addr: str, cert: str, key: str) -> None:
        """Listen with TLS."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.add_routes([web.get("/v1/command", self._command), web.post("/v1/ack", self._ack)])
        context = ReloadingCertificate(Path(cert), Path(key)).context()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        host, _, port = addr.rpartition(":")
        site = web.TCPSite(self._runner, host or None, int(port), ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise StartError(
                f"cannot listen on {addr}: {error}; change --bootstrap-addr"
            ) from error
        self.port = int(self._runner.addresses[0][1])

    async def aclose(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def run(self, host: Host, command: HostCommand) -> HostResult:
        """Leave a command for the host and wait for its acknowledgement."""
        box = self._boxes.setdefault(host.machine_id, _Mailbox())
        name = command.operation_id
        if command.kind is CommandKind.PROBE:
            if box.done == command.operation_id:
                return HostResult(0)
            # An acknowledgement of the operation itself must not pass for one of the probe.
            self._probes += 1
            name = f"probe-{self._probes}-{command.operation_id}"
        body: dict[str, object] = {
            "id": name,
            "operation": command.operation_id,
            "type": str(command.kind),
            "cluster_id": command.cluster,
            "blob": base64.b64encode(command.secret).decode(),
            "grace_seconds": command.grace,
            "timeout_seconds": max(1, int(command.limit)),
            "provider": command.label,
            "provider_id": command.provider_id,
            "taints": " ".join(command.taints),
        }
        pending = _Pending(body, asyncio.get_running_loop().create_future())
        box.command = pending
        box.news.set()
        try:
            async with asyncio.timeout(command.limit):
                return await pending.ended
        except TimeoutError as error:
            raise HookFailed(f"{host.ref} did not answer within {command.limit:.0f} s") from error
        finally:
            if box.command is pending:
                box.command = None

    async def _command(self, request: web.Request) -> web.Response:
        machine = self._authenticated(request)
        box = self._boxes.setdefault(machine, _Mailbox())
        if box.command is None:
            box.news.clear()
            try:
                async with asyncio.timeout(LONG_POLL):
                    await box.news.wait()
            except TimeoutError:
                return web.Response(status=204)
        if box.command is None:
            return web.Response(status=204)
        return web.json_response(box.command.body)

    async def _ack(self, request: web.Request) -> web.Response:
        machine = self._authenticated(request)
        try:
            body = json.loads(await request.text())
            command, ok = str(body["command_id"]), bool(body["ok"])
        except (ValueError, KeyError, TypeError) as error:
            raise web.HTTPBadRequest(text=f"expected command_id and ok: {error}\n") from error
        box = self._boxes.setdefault(machine, _Mailbox())
        if ok:
            box.done = command
        pending = box.command
        if pending is not None and pending.body["id"] == command and not pending.ended.done():
            failure = str(body.get("error") or "")
            pending.ended.set_result(HostResult(0 if ok else 1, stderr=failure))
            box.command = None
        return web.Response(status=204)

    def _authenticated(self, request: web.Request) -> str:
        machine = request.query.get("machine_id", "")
        operation = self._current(machine) if machine else ""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        expected = token_for(self._secret, machine, operation)
        if not operation or not hmac.compare_digest(given.encode(), expected.encode()):
            raise web.HTTPUnauthorized(text="no such machine, or not its token\n")
        return machine


def read_ca(path: str | None, cert: str) -> str:
    """The CA that agents pin: the given one, or the server's own certificate."""
    return Path(path or cert).read_text("utf-8")
