"""The SSH channel: script and blob over one connection, to a host whose key is pinned.

The pin was made with the host (`hostkey`) and is checked on every connection. A host without a pin,
because it was adopted, is trusted at first contact, pinned and logged. The script is the remote
command's program, the blob its standard input.
"""

import asyncio
import base64
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from bigfleet_providerkit.errors import HookFailed, OptionError, Retryable, Unauthorized
from bigfleet_providerkit.hostexec.contract import tail
from bigfleet_providerkit.hostexec.hostkey import pin_of
from bigfleet_providerkit.substrate import Host, HostCommand, HostResult

CONNECT_SECONDS = 15.0
Pinned = Callable[[Host, str], None]


@dataclass(frozen=True, slots=True)
class SshAccess:
    """How hosts are reached."""

    key: str
    user: str = "root"
    port: int = 22
    jump: str = ""
    jump_known_hosts: str | None = None


def load_key(path: str | None) -> str:
    """The path of the private key; refuses a start without one."""
    if not path:
        raise OptionError("no --ssh-key: hosts are reached by SSH; give the path of a private key")
    if not Path(path).is_file():
        raise OptionError(f"--ssh-key {path} cannot be read; give the path of a private key")
    try:
        asyncssh.read_private_key(path)
    except (asyncssh.KeyImportError, OSError) as error:
        raise OptionError(f"--ssh-key {path} is not a usable private key: {error}") from error
    return path


class _PinnedClient(asyncssh.SSHClient):
    """Accepts exactly the host key whose pin is known."""

    def __init__(self, pin: str) -> None:
        self._pin = pin
        self.seen = ""

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Compare pins; the first contact with an unpinned host is trusted."""
        line = key.export_public_key().decode().split()
        self.seen = pin_of(base64.b64decode(line[1]))
        return not self._pin or self._pin == self.seen


class SshChannel:
    """Runs commands on hosts over SSH."""

    def __init__(self, access: SshAccess, on_first_contact: Pinned) -> None:
        self._access = access
        self._on_first_contact = on_first_contact
        self._jump: asyncssh.SSHClientConnection | None = None
        self._jumping = asyncio.Lock()

    async def aclose(self) -> None:
        """Let go of the connection to the jump host."""
        if self._jump is not None:
            self._jump.close()
            await self._jump.wait_closed()
            self._jump = None

    async def _over(self) -> asyncssh.SSHClientConnection | None:
        """The connection to the jump host, which all sessions share; None without one."""
        access = self._access
        if not access.jump:
            return None
        async with self._jumping:
            if self._jump is None or self._jump.is_closed():
                user, _, place = access.jump.rpartition("@")
                host, _, port = place.partition(":")
                try:
                    self._jump = await asyncssh.connect(
                        host,
                        int(port or 22),
                        username=user or access.user,
                        client_keys=[access.key],
                        known_hosts=access.jump_known_hosts,
                        connect_timeout=CONNECT_SECONDS,
                        login_timeout=CONNECT_SECONDS,
                        keepalive_interval=CONNECT_SECONDS,
                        config=None,
                    )
                except (OSError, asyncssh.Error, TimeoutError) as error:
                    raise Retryable(f"jump host {access.jump}: {error}") from error
            return self._jump

    async def run(self, host: Host, command: HostCommand) -> HostResult:
        """Run the wrapper on the host, within the command's limit."""
        try:
            return await asyncio.wait_for(self._run(host, command), command.limit)
        except TimeoutError as error:
            raise HookFailed(f"{command.kind} did not end within {command.limit:.0f} s") from error

    async def _run(self, host: Host, command: HostCommand) -> HostResult:
        client = _PinnedClient(host.pin)
        over = await self._over()
        try:
            connection, _ = await asyncssh.create_connection(
                lambda: client,
                host.address,
                self._access.port,
                username=self._access.user,
                client_keys=[self._access.key],
                known_hosts=b"",
                server_host_key_algs=["ssh-ed25519"] if host.pin else (),
                connect_timeout=CONNECT_SECONDS,
                login_timeout=CONNECT_SECONDS,
                config=None,
                tunnel=over or (),
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise Unauthorized(
                f"the host key of {host.ref} at {host.address} is not the one it was made with"
            ) from error
        except asyncssh.PermissionDenied as error:
            raise Retryable(f"{host.ref} refuses the SSH key (still booting?)") from error
        except (OSError, asyncssh.Error, TimeoutError) as error:
            raise Retryable(f"{host.ref} at {host.address} does not answer: {error}") from error
        try:
            if not host.pin and client.seen:
                self._on_first_contact(host, client.seen)
            return await self._execute(connection, command)
        finally:
            connection.close()

    async def _execute(
        self, connection: asyncssh.SSHClientConnection, command: HostCommand
    ) -> HostResult:
        program = f"sh -c {shlex.quote(command.script)}"
        if self._access.user != "root":
            program = f"sudo -n {program}"
        try:
            # Without a secret the script's input ends at once: with an empty text asyncssh would
            # leave it open, and a script that reads it would wait.
            stdin = {"input": command.secret} if command.secret else {"stdin": asyncssh.DEVNULL}
            done = await connection.run(program, **stdin, encoding=None)
        except (OSError, asyncssh.Error) as error:
            raise Retryable(f"the connection was lost: {error}") from error
        if done.exit_status is None:
            raise Retryable(f"the script was ended by a signal: {done.exit_signal}")
        return HostResult(done.exit_status, _text(done.stdout), _text(done.stderr))


def _text(output: object) -> str:
    if isinstance(output, bytes):
        return tail(output.decode(errors="replace"))
    return tail(str(output or ""))
