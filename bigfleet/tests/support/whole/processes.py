"""A shard and its provider as processes, clusters that dial them, and what each of them says.

Nothing here is simulated but the clusters: the processes are those that are shipped, and they speak
gRPC and HTTP on loopback.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import provider_pb2, provider_pb2_grpc, shardread_pb2
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as read_grpc
from bigfleet_providerkit.testing import ProviderProcess, free_port

FAKE: Final = ProviderProcess.module("bigfleet_lab.fake.main")
NAME: Final = "fake"
_POLL: Final = 0.05


@dataclass
class ShardProcess:
    """`bigfleet shard`, which may be killed and started again on the same directory."""

    folder: Path
    provider: str
    flags: tuple[str, ...] = ()
    listen: int = 0
    http: int = 0
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    logs: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        with free_port() as one, free_port() as other:
            self.listen, self.http = one, other

    @property
    def address(self) -> str:
        """Where operators dial it."""
        return f"127.0.0.1:{self.listen}"

    def start(self) -> None:
        """A new process; its log is a file of its own."""
        self.starts += 1
        self.logs.append(self.folder / f"shard-{self.starts}.log")
        command = [
            sys.executable, "-m", "bigfleet.cli.main", "shard", "--shard-id", "s-1",
            "--listen", self.address, "--metrics-addr", f"127.0.0.1:{self.http}",
            "--data-dir", str(self.folder / "data"),
            "--provider-addr", f"{NAME}={self.provider}", *self.flags,
        ]  # fmt: skip
        with self.logs[-1].open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def terminate(self, seconds: float) -> int:
        """SIGTERM; the exit code, within so many seconds."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def said(self) -> str:
        """Everything this process has written."""
        return self.logs[-1].read_text(errors="replace")

    def get(self, page: str) -> str:
        """A page of its HTTP server; empty while it does not answer."""
        try:
            url = f"http://127.0.0.1:{self.http}{page}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode())
        except (OSError, urllib.error.URLError):
            return ""

    def cycles(self, since: int = 0) -> list[dict[str, Any]]:
        """Its cycles from one on."""
        return [json.loads(line) for line in self.get(f"/debug/cycles?since={since}").splitlines()]

    def metric(self, series: str) -> float:
        """A series as scraped, with its labels; 0 where there is none."""
        for line in self.get("/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name == f"bigfleet_shard_{series}":
                return float(value)
        return 0.0

    def resident(self) -> int:
        """Bytes it holds in memory."""
        assert self.process is not None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * 4096

    async def until(self, what: str, holds: Callable[[], Any], seconds: float = 60.0) -> Any:
        """Wait for something to hold; what it was."""
        latest = time.monotonic() + seconds
        while not (found := holds()):
            assert self.process is not None
            code = self.process.poll()
            assert code is None, f"the shard ended with {code}: {self.said()[-2000:]}"
            assert time.monotonic() < latest, f"{what} not within {seconds:g} s: {self._tail()}"
            await asyncio.sleep(_POLL)
        return found

    def _tail(self) -> str:
        cycles = [(c["cycle"], c["trigger"], c["actions"]) for c in self.cycles()[-6:]]
        return f"last cycles {cycles}, log {self.said()[-1500:]}"

    async def machines(self) -> dict[str, tuple[str, str]]:
        """Its machines: id -> state and cluster."""
        channel = open_channel(self.address, None)
        try:
            stub: Any = read_grpc.ShardReadStub(channel)
            found = {}
            async for batch in stub.ListMachines(shardread_pb2.ListMachinesRequest()):
                for record in batch.machines:
                    found[record.id] = _shown(record)
            return found
        finally:
            await channel.close()


async def provided(address: str) -> dict[str, tuple[str, str]]:
    """The machines of a provider: id -> state and cluster."""
    channel = open_channel(address, None)
    try:
        stub: Any = provider_pb2_grpc.CapacityProviderStub(channel)
        answer = await stub.List(provider_pb2.ListFilter())
        found = {record.id: _shown(record) for record in answer.machines}
        assert len(found) == len(answer.machines), "the provider lists a machine twice"
        return found
    finally:
        await channel.close()


def _shown(record: provider_pb2.Machine) -> tuple[str, str]:
    state = provider_pb2.MachineState.Name(record.state).removeprefix("MACHINE_STATE_")
    return state, record.cluster


@contextmanager
def processes(folder: Path, machines: int, *flags: str) -> Iterator[ShardProcess]:
    """A provider that is up and a shard that is not started yet; both gone afterwards."""
    arguments = (f"--seed-count={machines}", f"--state={folder / 'provider.db'}", "--slow-ms=20")
    with ProviderProcess(FAKE, *arguments, log=folder / "provider.log").wait_open() as provider:
        shard = ShardProcess(folder, provider.address, flags)
        try:
            yield shard
        finally:
            if shard.process is not None and shard.process.poll() is None:
                shard.kill()
