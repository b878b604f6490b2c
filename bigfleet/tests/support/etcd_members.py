"""Real etcd members on loopback, as processes that a test may kill, pause and start again.

Which binary is used is the business of `tools/etcd.py`. Nothing is flushed to disk: tests kill
processes, not machines. A cluster is started in a thread's time, so it can be a fixture of a whole
session; what belongs to one test has a prefix of its own.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import etcd
from bigfleet.wire.tls import TlsFiles

START_SECONDS = 60.0
LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass
class Member:
    """One member: its addresses, its folder, and its process while it runs."""

    name: str
    client: str
    peer: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class Cluster:
    """All members of one etcd."""

    members: Sequence[Member]
    options: Sequence[str] = ()
    tls: TlsFiles | None = None
    """Of the members; they want a certificate of the same CA of the one that dials them."""
    _binary: Path = field(default_factory=lambda: etcd.find().path)

    @property
    def endpoints(self) -> list[str]:
        """host:port of every member."""
        return [member.client for member in self.members]

    def address(self, prefix: str, endpoints: Sequence[str] = ()) -> str:
        """The address of a store with a prefix of its own."""
        return f"etcd://{','.join(endpoints or self.endpoints)}/{prefix}"

    def start(self, member: Member) -> None:
        """Start one, with what it had when it ended."""
        peers = ",".join(f"{each.name}=http://{each.peer}" for each in self.members)
        command = [
            str(self._binary),
            f"--name={member.name}",
            f"--data-dir={member.folder / 'data'}",
            f"--listen-client-urls={self._url(member)}",
            f"--advertise-client-urls={self._url(member)}",
            f"--listen-peer-urls=http://{member.peer}",
            f"--initial-advertise-peer-urls=http://{member.peer}",
            f"--initial-cluster={peers}",
            "--initial-cluster-state=new",
            "--unsafe-no-fsync",
            "--log-level=error",
            *self._tls_options(),
            *self.options,
        ]
        with (member.folder / "log").open("ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_until_ready(self, member: Member) -> None:
        """Until the member has a leader and answers."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers(member):
            assert member.process is not None
            assert member.process.poll() is None, (member.folder / "log").read_text()
            assert time.monotonic() < deadline, (member.folder / "log").read_text()
            time.sleep(0.05)

    def post(self, path: str, body: Mapping[str, object], token: str = "") -> dict[str, object]:
        """Ask a member through etcd's own JSON gateway: for what the store never does."""
        request = urllib.request.Request(
            f"{self._url(self.members[0])}{path}", json.dumps(body).encode()
        )
        if token:
            request.add_header("Authorization", token)
        with urllib.request.urlopen(request, timeout=10, context=self._context()) as response:
            said = json.load(response)
        assert isinstance(said, dict)
        return said

    def leading_member(self) -> Member:
        """The member that leads etcd itself."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for member in self.members:
                with contextlib.suppress(OSError):
                    status = self._status(member)
                    if status["leader"] == _header(status)["member_id"]:
                        return member
            time.sleep(0.05)
        raise AssertionError("no member of etcd leads")

    def stop(self) -> None:
        """End every member."""
        for member in self.members:
            member.kill()

    def _answers(self, member: Member) -> bool:
        try:
            return "leader" in self._status(member)
        except urllib.error.HTTPError as error:
            # From 3.6 on it tells only root how it is; that it refuses others is an answer.
            with error:
                return b"leader changed" not in error.read() and error.code < 500
        except OSError:
            return False

    def _status(self, member: Member) -> dict[str, object]:
        request = urllib.request.Request(f"{self._url(member)}/v3/maintenance/status", b"{}")
        with urllib.request.urlopen(request, timeout=2, context=self._context()) as response:
            status = json.load(response)
        assert isinstance(status, dict)
        return status

    def _url(self, member: Member) -> str:
        return f"http{'s' if self.tls else ''}://{member.client}"

    def _tls_options(self) -> list[str]:
        if self.tls is None:
            return []
        return [
            f"--cert-file={self.tls.cert}", f"--key-file={self.tls.key}",
            f"--trusted-ca-file={self.tls.ca}", "--client-cert-auth",
        ]  # fmt: skip

    def _context(self) -> ssl.SSLContext | None:
        if self.tls is None:
            return None
        context = ssl.create_default_context(cafile=str(self.tls.ca))
        context.load_cert_chain(self.tls.cert, self.tls.key)
        return context


def _header(status: dict[str, object]) -> dict[str, object]:
    header = status["header"]
    assert isinstance(header, dict)
    return header


@contextlib.contextmanager
def running(
    count: int, options: Sequence[str] = (), tls: TlsFiles | None = None
) -> Iterator[Cluster]:
    """So many members, ready."""
    with tempfile.TemporaryDirectory(prefix="etcd-") as folder:
        members = []
        for name, ports in zip(("a", "b", "c", "d", "e"), free_ports(count, 2), strict=False):
            (Path(folder) / name).mkdir()
            client, peer = (f"127.0.0.1:{port}" for port in ports)
            members.append(Member(name, client, peer, Path(folder) / name))
        cluster = Cluster(members, options, tls)
        try:
            for member in members:
                cluster.start(member)
            for member in members:
                cluster.wait_until_ready(member)
            yield cluster
        finally:
            cluster.stop()


def free_ports(count: int, each: int) -> list[list[int]]:
    """Ports on which no process listens now, in groups.

    None that the kernel gives to a process that dials out: one that is killed finds its own free
    when it is started again.
    """
    lowest = int(LOCAL_PORTS.read_text(encoding="ascii").split()[0])
    ports: list[int] = []
    while len(ports) < count * each:
        port = secrets.randbelow(lowest - 10_000) + 10_000
        if port not in ports and _is_free(port):
            ports.append(port)
    return [ports[at : at + each] for at in range(0, len(ports), each)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
