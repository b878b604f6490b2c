"""SSH into guests: one listener on the loopback interface, an address of its own for every guest.

The address that a client dialled says which guest it means; the handshake is made with the host
key that the user data brought, so a provider's pin is really checked. The listener takes all of
127.0.0.0/8 and is bound to the loopback device: nothing from outside of this machine reaches it.
"""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from bigfleet_fakecloud.errors import ScriptError
from bigfleet_fakecloud.guests.user_data import HOST_KEY

if TYPE_CHECKING:
    from bigfleet_fakecloud.guests.guests import Guests

SO_BINDTODEVICE = 25


class _Login(asyncssh.SSHServer):
    """Lets in every client with the key, whatever its user name."""

    def __init__(self, allowed: bytes) -> None:
        self._allowed = allowed

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key.public_data == self._allowed


class SshServer:
    """Answers SSH for all guests. `client_key` is the file of the private key that gets in."""

    def __init__(self, guests: "Guests", client_key: Path) -> None:
        self._guests = guests
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None
        key = asyncssh.generate_private_key("ssh-ed25519")
        client_key.write_bytes(key.export_private_key())
        client_key.chmod(0o600)
        self.client_key = client_key
        self.public_key = key.export_public_key().decode().strip()
        self._allowed = key.public_data
        self._listener = _loopback_listener()
        self.port = int(self._listener.getsockname()[1])

    async def start(self) -> None:
        """Take connections."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def stop(self) -> None:
        """Take no more, and end those that are there."""
        tasks = [*self._tasks, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        ref = self._guests.at(connection.getsockname()[0])
        if ref is None:
            connection.close()
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = await asyncio.to_thread(self._host_key, ref)

        async def shell(process: "asyncssh.SSHServerProcess[bytes]") -> None:
            script = str(process.command or "")
            done = await self._guests.run(ref, script, await process.stdin.read())
            process.stdout.write(done.stdout.encode())
            process.stderr.write(done.stderr.encode())
            process.exit(done.exit_code)

        # A client that gives up in the middle of the handshake is not a fault of the cloud.
        with contextlib.suppress(OSError, asyncssh.Error):
            server = await asyncssh.run_server(
                connection, server_factory=lambda: _Login(self._allowed),
                server_host_keys=[key], process_factory=shell, encoding=None,
            )  # fmt: skip
            await server.wait_closed()

    def _host_key(self, ref: str) -> asyncssh.SSHKey:
        """The key that the user data brought; a host that got none makes its own."""
        folder = self._guests.folder(ref)
        path = folder.path(HOST_KEY)
        if not path.exists():
            made = asyncssh.generate_private_key("ssh-ed25519")
            folder.put(HOST_KEY, made.export_private_key())
        return asyncssh.read_private_key(path)


def _loopback_listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, b"lo\0")
    except OSError as error:
        listener.close()
        raise ScriptError(
            f"SSH for guests needs a listener on all loopback addresses, which only Linux 5.7 and "
            f"newer gives to every user: {error}"
        ) from error
    listener.bind(("0.0.0.0", 0))
    listener.listen(1024)
    listener.setblocking(False)
    return listener
